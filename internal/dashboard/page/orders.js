// Orders: buttons, each of which says what will happen and asks back.
import { byId, h, setText, whenChanged } from "./dom.js";
import { capital, sentence } from "./words.js";

const grave = new Set(["abort", "promote", "finish"]);
let asking = null; // what the dialog is about

// show puts a button there for each order that makes sense.
export function show(d) {
  whenChanged(byId("orders"), [d.key, d.orders ?? []], (element) => {
    const held = element.contains(document.activeElement) ? document.activeElement.dataset.verb : null;
    element.replaceChildren(...(d.orders ?? []).map((o) =>
      h("button", { type: "button", "data-verb": o.verb, class: grave.has(o.verb) ? "grave" : null, title: o.short, text: capital(o.verb), on: { click: () => ask(o.verb) } })));
    if (held) (element.querySelector(`[data-verb="${held}"]`) ?? element.querySelector("button") ?? byId("name")).focus();
  });
  latest = d;
}

let latest = null;

function ask(verb) {
  const order = latest?.orders?.find((o) => o.verb === verb);
  if (!order) return;
  asking = { rollout: latest.key, verb, stand: latest.stand };
  setText(byId("confirm-title"), `${capital(verb)} ${latest.key}?`);
  setText(byId("confirm-says"), sentence(order.effect));
  setText(byId("confirm-stand"), `It is for attempt ${latest.stand.attempt}${latest.position ? `, stage ${latest.position},` : ""} as shown, and is written onto nothing else.`);
  setText(byId("confirm-yes"), capital(verb));
  setText(byId("order-says"), "");
  byId("confirm").showModal();
  byId("confirm-no").focus();
}

async function give() {
  const order = asking;
  byId("confirm").close();
  if (!order) return;
  try {
    const response = await fetch("api/order", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(order) });
    const said = await response.json();
    setText(byId("order-says"), response.ok ? said.says : `Nothing was written: ${said.error}`);
  } catch (error) {
    setText(byId("order-says"), `It is not known whether ${order.verb} was written, since the dashboard does not answer: ${error.message}`);
  }
}

// forget takes the last answer away, when another rollout is looked at.
export function forget() {
  latest = null;
  setText(byId("order-says"), "");
}

export function start() {
  byId("confirm-no").addEventListener("click", () => byId("confirm").close());
  byId("confirm-yes").addEventListener("click", give);
  byId("confirm").addEventListener("close", () => {
    const verb = asking?.verb;
    asking = null;
    (byId("orders").querySelector(`[data-verb="${verb}"]`) ?? byId("name")).focus();
  });
}
