// How numbers, times and states are written.

let offset = 0; // milliseconds that the server's clock is ahead

export function serverTime(now) {
  offset = new Date(now).getTime() - Date.now();
}

export const now = () => Date.now() + offset;

const day = (d) => d.toLocaleDateString("sv-SE");

// clock writes a time of today as such, and any other with its date.
export function clock(at) {
  if (!at) return "–";
  const d = new Date(at);
  const time = d.toLocaleTimeString("en-GB");
  return day(d) === day(new Date(now())) ? time : `${day(d)} ${time}`;
}

// span writes a length of time, given in seconds, in at most two units.
export function span(seconds) {
  const left = Math.max(0, Math.round(seconds));
  const units = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
  const first = units.findIndex(([, size]) => left >= size);
  if (first < 0) return "0 s";
  const [name, size] = units[first];
  const rest = units[first + 1];
  const more = rest ? Math.floor((left % size) / rest[1]) : 0;
  return `${Math.floor(left / size)} ${name}${more > 0 ? ` ${more} ${rest[0]}` : ""}`;
}

export const ago = (at) => `${span((now() - new Date(at).getTime()) / 1000)} ago`;

// share writes percents as the status has them.
export const share = (percent) => (percent === "" || percent === undefined ? "–" : `${percent} %`);

// digits writes a number with at most so many digits behind the point.
export const digits = (n, most) => String(Number(n.toFixed(most)));

// rate is the part of failed requests, in percent; null: there were no requests.
export const rate = (numbers) => (numbers && numbers.requests > 0 ? (100 * numbers.errors) / numbers.requests : null);

export const percent = (n) => (n === null || n === undefined ? "–" : `${digits(n, 2)} %`);

export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  return seconds < 1 ? `${digits(seconds * 1000, 1)} ms` : `${digits(seconds, 2)} s`;
}

export const count = (n) => (n === null || n === undefined ? "–" : digits(n, 1));

// spaced parts the words of a name such as AwaitingApproval.
export const spaced = (name) => name.replace(/([a-z])([A-Z])/g, (_, a, b) => `${a} ${b.toLowerCase()}`);

export const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

export function sentence(text) {
  return text === "" ? "" : capital(text) + (/[.!?]$/.test(text) ? "" : ".");
}

// signs stand beside the words, so that colour is never alone.
export const signs = { bad: "✕", warn: "!", active: "▸", good: "✓", quiet: "–" };

export const verdictTones = { Healthy: "good", Degraded: "warn", Unhealthy: "bad", Unknown: "quiet" };
