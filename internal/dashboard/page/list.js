// All rollouts at a glance.
import { byId, h, setText, whenChanged } from "./dom.js";
import { capital, share, signs, spaced, verdictTones } from "./words.js";

const rows = new Map(); // by key: what is known
const elements = new Map(); // by key: the row on the page

export function badge(tone, text) {
  return h("span", { class: `badge ${tone}` }, h("span", { class: "sign", "aria-hidden": "true", text: signs[tone] }), text);
}

export const address = (key) => `#/${key.split("/").map(encodeURIComponent).join("/")}`;

// take takes rows over, and returns those whose phase has changed.
export function take({ reset, rows: fresh, gone }) {
  const changed = [];
  const left = new Set(reset ? rows.keys() : gone);
  for (const row of fresh) {
    left.delete(row.key);
    const before = rows.get(row.key);
    if (before && before.phase !== row.phase) changed.push(row);
    rows.set(row.key, row);
  }
  for (const key of left) {
    rows.delete(key);
    elements.get(key)?.remove();
    elements.delete(key);
  }
  draw();
  return changed;
}

const order = (a, b) => a.urgency - b.urgency || compare(a.namespace, b.namespace) || compare(a.name, b.name);
const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

export function draw() {
  const all = [...rows.values()].sort(order);
  const text = byId("filter").value.trim().toLowerCase();
  const shown = all.filter((r) => text === "" || `${r.key} ${r.phase} ${r.verdict} ${r.revision}`.toLowerCase().includes(text));
  const waiting = all.filter((r) => r.needsPerson).length;
  setText(byId("summary"), all.length === 0 ? "" : `${waiting} of ${all.length} ${waiting === 1 ? "waits" : "wait"} for a person${shown.length < all.length ? `; ${shown.length} shown` : ""}`);
  byId("rollouts").hidden = shown.length === 0;
  byId("empty").hidden = shown.length > 0;
  setText(byId("empty"), all.length === 0 ? "There is no WeightedRollout here." : "No rollout matches the filter.");
  const body = byId("rows");
  const keep = new Set(shown.map((r) => r.key));
  for (const [key, element] of elements) if (!keep.has(key)) element.remove();
  shown.forEach((row, i) => {
    const element = rowElement(row);
    if (body.children[i] !== element) {
      const held = element.contains(document.activeElement) ? document.activeElement : null;
      body.insertBefore(element, body.children[i] ?? null);
      held?.focus();
    }
  });
}

function rowElement(row) {
  let element = elements.get(row.key);
  if (!element) {
    element = h("tr", { role: "row" });
    elements.set(row.key, element);
  }
  whenChanged(element, row, () => {
    const held = element.contains(document.activeElement);
    element.setAttribute("data-key", row.key);
    element.replaceChildren(
      h("th", { role: "rowheader", scope: "row", class: "name" },
        h("a", { href: address(row.key) }, h("span", { class: "namespace", text: `${row.namespace} / ` }), h("span", { text: row.name })),
        h("small", { class: "revision", text: row.revision === "" ? "no revision yet" : `revision ${row.revision}` })),
      h("td", { role: "cell", class: "phase" }, badge(row.tone, spaced(row.phase))),
      h("td", { role: "cell", class: "stage" }, bar(row), h("span", { class: "position", text: row.position || "–" })),
      h("td", { role: "cell", class: "num weight" }, h("span", { class: "desired", text: share(row.desired) }), row.observed === "" ? null : h("small", { text: `gets ${row.observed} %` })),
      h("td", { role: "cell", class: "verdict" }, badge(verdictTones[row.verdict] ?? "quiet", row.verdict)),
      h("td", { role: "cell", class: "waits" }, h("span", { text: capital(row.says) })),
    );
    if (held) element.querySelector("a").focus();
  });
  return element;
}

// bar draws the stages as one segment each.
function bar(row) {
  const say = { done: "done", here: "under way", ahead: "to come" };
  return h("span", { class: "bar", role: "img", "aria-label": row.stages.map((s) => `${s.weight} percent ${say[s.state]}`).join(", ") },
    ...row.stages.map((s) => h("span", { class: s.state })));
}

// linkOf is the link of a row, to come back to.
export const linkOf = (key) => elements.get(key)?.querySelector("a");
