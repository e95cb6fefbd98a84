// The three charts of a rollout.
import { byId, setText, table, whenChanged } from "./dom.js";
import { above, draw } from "./chart.js";
import { clock, digits, duration, now, percent, rate } from "./words.js";

const time = (at) => new Date(at).getTime();

// range says in words how a line went.
function range(name, points, write) {
  const values = points.map((p) => p[1]).filter((v) => v !== null && v !== undefined);
  if (values.length === 0) return `${name}: no value`;
  return `${name}: ${write(values.at(-1))} at last, from ${write(Math.min(...values))} to ${write(Math.max(...values))}`;
}

const says = (lines, write) => lines.map((l) => range(l.name, l.points, write)).join(". ") + ".";

// paint draws a chart if it, or the room for it, has changed.
function paint(id, chart) {
  const element = byId(id);
  whenChanged(element, [chart, element.clientWidth], () => draw(element, chart));
}

export function drawWeight(d) {
  const write = (n) => `${digits(n, 2)} %`;
  const { seen, reported, since } = d.weight;
  // The line goes on to the present in steps of a second, not of a message.
  const end = Math.max(Math.ceil(now() / 1000) * 1000, time(since) + 1000);
  const follow = (name) => {
    const points = seen.map((p) => [time(p.at), p[name] ?? null]);
    if (points.length > 0) points.push([end, points.at(-1)[1]]);
    return points;
  };
  const desired = [...reported.map((p) => [time(p.at), p.desired ?? null]), ...follow("desired")];
  // Desired is drawn first, so that the dashes of the others show on it where they agree.
  const lines = [
    { name: "desired", style: "first", step: true, points: desired },
    { name: "written", style: "second", step: true, points: follow("written") },
    { name: "observed", style: "third", step: true, points: follow("observed") },
  ];
  const values = lines.flatMap((l) => l.points.map((p) => p[1] ?? 0));
  paint("weight-chart", {
    title: "Weight of the canary over time", says: says(lines, write), lines, write,
    from: Math.min(desired[0]?.[0] ?? end, end - 60000), to: end, top: Math.min(100, above(Math.max(...values, 1))), since: time(since),
  });
  setText(byId("weight-note"), `Since ${clock(since)} as this dashboard has seen it. ${reported.length > 0 ? "Before that, left of the dotted line, as events and status say, and the desired weight only." : "Of the time before that no event is left."}`);
  const cell = (n) => (n === undefined ? "–" : write(n));
  table(byId("weight-table"), [["When", false], ["Desired", true], ["Written", true], ["Observed", true]],
    [...reported, ...seen].toReversed().map((p) => [clock(p.at), cell(p.desired), cell(p.written), cell(p.observed)]), "Nothing has been seen yet.");
}

// tracks draws a number of both tracks over the evaluations.
function tracks(d, id, title, write, value, limit) {
  const evaluations = d.evidence?.evaluations ?? [];
  if (evaluations.length === 0) return;
  const line = (name, style, pick) => ({ name, style, points: evaluations.map((e) => [time(e.end), value(pick(e))]) });
  const lines = [line("stable", "second", (e) => e.stable), line("canary", "first", (e) => e.canary)];
  const highest = Math.max(...lines.flatMap((l) => l.points.map((p) => p[1] ?? 0)));
  // The limit is shown where it is near; far above, it would press the lines flat.
  const near = limit !== undefined && limit <= 4 * highest;
  const limits = limit === undefined ? "" : ` The limit is ${write(limit)}.`;
  paint(id, {
    title: `${title} over the last ${evaluations.length} evaluations`, says: says(lines.toReversed(), write) + limits, lines, write, limit,
    from: time(evaluations[0].end), to: Math.max(time(evaluations.at(-1).end), time(evaluations[0].end) + 1000),
    top: above(near ? Math.max(highest, limit) : highest || limit || 0),
  });
}

export function drawErrors(d) {
  tracks(d, "errors-chart", "Error rate", percent, (n) => rate(n), d.limits.errorPercent);
}

export function drawLatency(d) {
  tracks(d, "latency-chart", "Response time", duration, (n) => n?.quantileSeconds ?? null, d.limits.latencySeconds);
}
