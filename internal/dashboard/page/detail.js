// One rollout in detail.
import { byId, facts, h, setText, table, whenChanged } from "./dom.js";
import { badge } from "./list.js";
import { drawErrors, drawLatency, drawWeight } from "./lines.js";
import { ago, clock, count, digits, duration, now, percent, rate, sentence, share, span, spaced } from "./words.js";

let shown = null; // the detail that is on the page

export const current = () => shown;

// clear takes the last rollout away, before another one is known.
export function clear(key) {
  shown = null;
  setText(byId("name"), key);
  phase(null);
  setText(byId("what"), "");
  byId("present").hidden = true;
  byId("missing").hidden = false;
  setText(byId("missing"), "Reading the rollout.");
}

export function show(d) {
  shown = d;
  byId("missing").hidden = !d.missing;
  byId("present").hidden = Boolean(d.missing);
  if (d.missing) {
    setText(byId("missing"), `There is no WeightedRollout ${d.key}, or none any more.`);
    phase(null);
    setText(byId("what"), "");
    return;
  }
  setText(byId("name"), `${d.namespace} / ${d.name}`);
  phase(d);
  setText(byId("what"), d.revision === "" ? "No revision yet" : `Revision ${d.revision}, attempt ${d.attempt}`);
  setText(byId("says"), sentence(d.says));
  setText(byId("do"), d.do === "" ? "" : `What to do: ${d.do}.`);
  plan(d);
  weights(d);
  evidence(d);
  tables(d);
  draw();
  tick();
}

// phase shows that of a rollout, or none.
function phase(d) {
  whenChanged(byId("phase"), d && [d.tone, d.phase], (e) => e.replaceChildren(...(d ? [badge(d.tone, spaced(d.phase))] : [])));
}

// draw draws the charts, which depend on the width of the page.
export function draw() {
  if (!shown || shown.missing) return;
  drawWeight(shown);
  drawErrors(shown);
  drawLatency(shown);
}

// tick lets countdowns and ages go on.
export function tick() {
  if (!shown || shown.missing) return;
  setText(byId("next"), next(shown));
  setText(byId("source"), source(shown));
}

function next(d) {
  const left = d.next ? (new Date(d.next).getTime() - now()) / 1000 : 0;
  if (left > 0) return `The share can change at ${clock(d.next)} at the earliest, in ${span(left)}.`;
  return "";
}

function plan(d) {
  const say = { done: "done", here: "under way", ahead: "to come" };
  const sign = { done: "✓", here: "▸", ahead: "" };
  whenChanged(byId("path"), d.stages, (element) => element.replaceChildren(...d.stages.map((s) => {
    const notes = [s.soak ? `soak ${s.soak}` : "", s.approval ? "approval" : ""].filter((n) => n !== "");
    return h("li", { class: s.state, "aria-current": s.state === "here" ? "step" : null },
      h("span", { class: "weight" }, h("span", { class: "sign", "aria-hidden": "true", text: sign[s.state] }), `${s.weight} %`),
      h("span", { class: "unseen", text: `, ${say[s.state]}` }),
      h("small", { text: notes.join(" · ") || "no soak" }));
  })));
  const s = d.stage;
  const parts = [];
  if (s && d.position) {
    parts.push(`Stage ${d.position} began at ${clock(s.startedAt)}.`);
    if (s.approved) parts.push("It is approved.");
    if (s.skipped) parts.push("Its soak is skipped.");
    if (s.scaledBack) parts.push("The canary was scaled back in it.");
    if (s.clockStoppedSince) parts.push(`The soak's clock has stood still since ${clock(s.clockStoppedSince)}.`);
  }
  setText(byId("stage"), parts.join(" "));
}

// written are the shares that the routes are known to have.
function written(d) {
  const all = d.routes.map((r) => r.written).filter((w) => w !== "");
  const different = [...new Set(all)].sort((a, b) => Number(a) - Number(b));
  if (different.length === 0) return "–";
  return different.length === 1 ? share(different[0]) : `${different[0]} to ${different.at(-1)} %`;
}

function weights(d) {
  const traffic = d.evidence?.traffic;
  const counted = traffic && !traffic.notCounted && traffic.canary + traffic.stable > 0;
  const observed = counted ? percent((100 * traffic.canary) / (traffic.canary + traffic.stable)) : share(d.observed);
  const from = counted ? `${count(traffic.canary)} of ${count(traffic.canary + traffic.stable)} requests`
    : { Requests: "of the requests, as of the last transition", Weights: "by the weights in the routes" }[d.share.observedFrom] ?? "";
  facts(byId("weights"), [
    ["Desired", share(d.desired), d.share.changedAt ? `since ${clock(d.share.changedAt)}` : ""],
    ["Written", written(d), d.share.confirmedAt ? `confirmed at ${clock(d.share.confirmedAt)}` : d.desired === "" ? "" : "not confirmed by the gateways yet"],
    ["Observed", observed, from],
  ]);
}

function gate(awaited) {
  if (awaited.open) return ["nothing", ""];
  return [awaited.what ?? "something", awaited.aboutSeconds > 0 ? `about ${span(awaited.aboutSeconds)}` : ""];
}

function evidence(d) {
  const e = d.evidence;
  // Once an attempt is over, what ended it counts, and not that nothing is measured any more.
  const over = ["RolledBack", "Completed", "Idle"].includes(d.phase) && d.snapshot;
  const v = e && !over ? e.verdict : d.snapshot;
  const pairs = [["Verdict", v ? v.state : "Unknown", v && v.reason ? spaced(v.reason) : ""]];
  if (v && v.score !== undefined && v.score !== "") pairs.push(["Score", digits(Number(v.score), 3), "of 1"]);
  if (e) {
    pairs.push([`Requests of ${e.subject}`, count(e.verdict.requests), "that count"]);
    pairs.push(["Next raise lacks", ...gate(e.ramp)], ["End of the stage lacks", ...gate(e.stage)]);
    if (e.comparison) pairs.push(["Worse than stable", digits(e.comparison.evidence, 4), `proven at ${digits(e.comparison.proof, 4)}`]);
  }
  facts(byId("evidence"), pairs);
  setText(byId("verdict-says"), v ? sentence(v.message ?? "") : "There is no verdict yet.");
  const evaluations = e?.evaluations ?? [];
  byId("charts").hidden = evaluations.length === 0;
  byId("evaluations-details").hidden = evaluations.length === 0;
  const p = d.limits.percentile ? `p${d.limits.percentile}` : "response time";
  setText(byId("latency-title"), `Response time, ${p}`);
  const track = (n) => [count(n?.requests), percent(rate(n)), duration(n?.quantileSeconds)];
  table(byId("evaluations"), [["Window ends", false], ["Outcome", false], ["Canary requests", true], ["errors", true], [p, true], ["Stable requests", true], ["errors", true], [p, true], ["Why", false]],
    evaluations.toReversed().map((is) => [clock(is.end), is.outcome, ...track(is.canary), ...track(is.stable), is.message ?? ""]), "");
}

function source(d) {
  if (d.evidence) return `Live numbers, ${span((now() - new Date(d.evidence.at).getTime()) / 1000)} old; read every 5 s while this page is looked at.`;
  const at = d.snapshot?.at ? `, of ${ago(d.snapshot.at)}` : "";
  return d.evidenceTrouble ? `Numbers of the status${at}. The live evidence cannot be read: ${d.evidenceTrouble}` : `Numbers of the status${at}.`;
}

function tables(d) {
  table(byId("conditions"), [["Condition", false], ["Status", false], ["Reason", false], ["In words", false], ["Since", false]],
    d.conditions.map((c) => [c.type, c.status, c.reason, c.message, clock(c.since)]), "The controller has said nothing yet.");
  const numbers = (d.numbers ?? []).map((n) => [n.what, n.value]);
  if (d.command) numbers.push(["last command", `${d.command.verb}: ${d.command.accepted ? "" : "ignored, "}${d.command.message || "carried out"}`]);
  facts(byId("numbers"), numbers);
  table(byId("history"), [["Attempt", true], ["Revision", false], ["Outcome", false], ["Weight", true], ["Began", false], ["Ended", false], ["Why", false]],
    d.history.map((a) => [String(a.attempt), a.revision, spaced(a.outcome), share(a.weight), clock(a.startedAt), clock(a.endedAt), [a.reason, a.message].filter(Boolean).join(": ")]), "No attempt has ended yet.");
  table(byId("events"), [["When", false], ["Kind", false], ["Event", false], ["In words", false]],
    d.events.map((e) => [clock(e.at), e.warning ? "Warning" : "Normal", e.reason, e.message + (e.times > 1 ? ` (${e.times} times)` : "")]),
    d.eventsTrouble ? `The events cannot be read: ${d.eventsTrouble}` : "None: the API server keeps them for an hour, as a rule.");
  table(byId("routes"), [["Route", false], ["Written", true], ["Confirmed", false], ["What is wrong", false]],
    d.routes.map((r) => [`${r.kind} ${r.name}`, share(r.written), clock(r.confirmedAt), [r.reason, r.message].filter(Boolean).join(": ") || "nothing"]), "No route is written yet.");
}
