// The page: it lets itself in, follows the address, and hands on what the server says.
import { byId, setText } from "./dom.js";
import * as detail from "./detail.js";
import { Link } from "./link.js";
import * as list from "./list.js";
import * as orders from "./orders.js";
import { clock, serverTime, spaced } from "./words.js";

let looksAt = null; // the key of the rollout in detail
let fresh = null; // when something was last heard

const link = new Link({
  hello(m) {
    heard(m.now);
    setText(byId("scope"), m.scope);
    setText(byId("mode"), m.actions ? "with orders" : "read-only");
  },
  beat: (m) => heard(m.now),
  state(m) {
    behind(m.behind ? `These data are behind${m.fresh ? `, of ${clock(m.fresh)}` : ""}: the API server cannot be asked, and is tried again. ${m.behind}` : "");
    setText(byId("link"), m.behind ? "Behind" : m.synced ? "Live" : "Reading");
  },
  rows(m) {
    const changed = list.take(m);
    if (changed.length > 0) announce(changed.map((r) => `${r.key} is ${spaced(r.phase)} now`).join(". "));
  },
  detail(m) {
    if (m.key !== looksAt) return;
    detail.show(m);
    orders.show(m);
  },
}, (why) => {
  setText(byId("link"), "Behind");
  behind(`These data are behind${fresh ? `, of ${clock(fresh)}` : ""}. ${why}`);
  letIn("").then((in_) => { if (in_ === false) shutOut(); });
});

function heard(now) {
  serverTime(now);
  fresh = now;
}

function behind(text) {
  byId("behind").hidden = text === "";
  setText(byId("behind"), text);
}

function announce(text) {
  setText(byId("announce"), text);
}

// letIn shows the secret of the address, or none to ask whether the cookie still holds.
// It is false if the server does not know it, and undefined if there is no answer.
async function letIn(token) {
  try {
    const response = await fetch("api/session", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ token }) });
    return response.status === 401 ? false : response.ok;
  } catch {
    return undefined;
  }
}

function shutOut() {
  link.close();
  setText(byId("link"), "Closed");
  behind("Open the address that kubectl weightedrollout dashboard has printed: it has a secret in it, which is another one each time.");
}

// follow shows what the address names: #/ all rollouts, #/NAMESPACE/NAME one.
function follow() {
  const parts = location.hash.replace(/^#\/?/, "").split("/").filter((p) => p !== "").map(decode);
  const key = parts.length === 2 ? parts.join("/") : null;
  const before = looksAt;
  looksAt = key;
  byId("list").hidden = key !== null;
  byId("detail").hidden = key === null;
  document.title = key === null ? "Rollouts" : `${key} · Rollouts`;
  if (key !== before) {
    orders.forget();
    if (key !== null) detail.clear(key);
  }
  link.open(key);
  return before;
}

function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

async function start() {
  const token = /^#token=(.*)$/.exec(location.hash)?.[1];
  if (token !== undefined) history.replaceState(null, "", "#/"); // the secret does not stay in the address
  const in_ = await letIn(token ?? "");
  if (in_ === false) {
    shutOut();
    return;
  }
  follow();
}

window.addEventListener("hashchange", () => {
  if (location.hash.startsWith("#token=")) {
    start();
    return;
  }
  const before = follow();
  if (looksAt !== null) byId("name").focus();
  else if (before !== null) (list.linkOf(before) ?? byId("list-title")).focus();
  window.scrollTo(0, 0);
});

// Nothing is asked for while nobody looks.
document.addEventListener("visibilitychange", () => {
  if (document.hidden) link.close();
  else if (byId("link").textContent !== "Closed") link.open(looksAt);
});

document.addEventListener("keydown", (e) => {
  if (e.key !== "Escape" || e.defaultPrevented || byId("confirm").open || looksAt === null) return;
  location.hash = "#/";
});

byId("skip").addEventListener("click", (e) => {
  e.preventDefault();
  byId("main").focus();
});
byId("filter").addEventListener("input", list.draw);
new ResizeObserver(() => detail.draw()).observe(byId("main"));
setInterval(detail.tick, 1000);
orders.start();
start();
