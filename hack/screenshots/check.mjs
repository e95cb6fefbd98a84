// Checks the page against what the API server has. It reads from standard input: the
// addresses of the page with orders and without, of the oracle, which knows the objects
// and plays the controller, and the evidence.
import assert from "node:assert/strict";
import { join } from "node:path";
import { input, launch, open, poll } from "./browser.mjs";
import { checkLooks } from "./looks.mjs";
import { checkOthers } from "./others.mjs";

const facts = await input();
const text = async (page, selector) => (await page.locator(selector).innerText()).trim();
const texts = async (page, selector) => (await page.locator(selector).allInnerTexts()).map((t) => t.trim());
const ask = async (path, method = "GET") => {
  const response = await fetch(facts.oracle + path, { method });
  if (!response.ok) throw new Error(`${path}: ${await response.text()}`);
  return response.json();
};
const rollouts = async () => Object.fromEntries((await ask("/rollouts")).items.map((o) => [`${o.metadata.namespace}/${o.metadata.name}`, o]));
const near = (got, want, off, what) => assert.ok(Math.abs(Number.parseFloat(got) - want) <= off, `${what}: the page shows ${got}, it is ${want}`);

// Every number of the list is that of the object.
async function checkList(page) {
  await page.waitForSelector("#rows tr");
  assert.deepEqual(await page.locator("#rows tr").evaluateAll((all) => all.map((r) => r.dataset.key)),
    ["shop/basket", "shop/payments", "shop/search", "shop/checkout", "blog/front"], "those that wait for a person come first");
  assert.equal(await text(page, "#summary"), "3 of 5 wait for a person");
  assert.equal(await text(page, "#scope"), "all namespaces");
  for (const [key, o] of Object.entries(await rollouts())) {
    const row = page.locator(`[data-key="${key}"]`);
    const st = o.status;
    const cell = async (name) => (await row.locator(`.${name}`).innerText()).replace(/\s+/g, " ").trim();
    assert.equal((await cell("phase")).replace(/^[^A-Z]*/, "").replace(" ", "").toLowerCase(), st.phase.toLowerCase(), `phase of ${key}`);
    assert.equal(await cell("desired"), st.share?.desired === undefined ? "–" : `${st.share.desired} %`, `weight of ${key}`);
    if (st.share?.observed !== undefined) assert.equal(await row.locator(".weight small").innerText(), `gets ${st.share.observed} %`);
    assert.equal(await cell("position"), st.stage?.position ?? "–", `stage of ${key}`);
    assert.match(await cell("verdict"), new RegExp(`${st.verdict?.state ?? "Unknown"}$`), `verdict of ${key}`);
    const said = st.conditions.find((c) => c.status === "True" && ["Stalled", "Reconciling", "Ready"].includes(c.type));
    assert.equal((await cell("waits")).toLowerCase(), said.message.toLowerCase(), `what ${key} waits for`);
    const stages = o.spec.plan.stages.length + 1;
    assert.equal(await row.locator(".bar > span").count(), stages, `stages of ${key}`);
    const done = st.outcome === "Completed" ? stages : st.outcome === "InProgress" ? st.stage.index : 0;
    assert.equal(await row.locator(".bar > .done").count(), done, `stages that ${key} has done`);
  }
}

// byKeyboard goes on with Tab until the focus is where it is wanted.
async function byKeyboard(page, selector, what) {
  for (let i = 0; i < 60; i++) {
    if (await page.evaluate((s) => document.activeElement?.matches(s), selector)) return;
    await page.keyboard.press("Tab");
  }
  throw new Error(`${what} cannot be reached with Tab`);
}

const fact = (page, list, name) => page.locator(`#${list} > div`, { has: page.locator(`dt:text-is("${name}")`) }).locator("dd > span").innerText();

// Every number of the detail is that of the object, or of the evidence.
async function checkDetail(page) {
  const { "shop/checkout": o } = await rollouts();
  const e = facts.evidence;
  const observed = (100 * e.traffic.canary) / (e.traffic.canary + e.traffic.stable);
  await poll("the evidence is there", async () => (await page.locator("#evaluations tbody tr").count()) === e.evaluations.length &&
    Math.abs(Number.parseFloat(await fact(page, "weights", "Observed")) - observed) <= 0.005);
  assert.equal(await text(page, "#name"), "shop / checkout");
  assert.equal(await text(page, "#what"), `Revision ${o.status.revision}, attempt ${o.status.attempt}`);
  assert.equal(await fact(page, "weights", "Desired"), `${o.status.share.desired} %`);
  assert.equal(await fact(page, "weights", "Written"), `${o.status.routes[0].written} %`);
  assert.equal(await fact(page, "evidence", "Verdict"), e.verdict.state);
  assert.equal(await fact(page, "evidence", "Score"), String(e.verdict.score));
  assert.equal(await fact(page, "evidence", "Requests of canary"), String(e.verdict.requests));
  assert.equal(await fact(page, "evidence", "Next raise lacks"), "nothing");
  assert.equal(await fact(page, "evidence", "End of the stage lacks"), e.stage.what);
  assert.equal(await fact(page, "evidence", "Worse than stable"), String(e.comparison.evidence));
  const path = await texts(page, "#path > li");
  assert.equal(path.length, o.spec.plan.stages.length + 1);
  o.spec.plan.stages.forEach((stage, i) => {
    assert.ok(path[i].includes(`${stage.weight} %`) && path[i].includes(`soak ${stage.soak}`), path[i]);
    assert.equal(path[i].includes("approval"), stage.approval === "Required", path[i]);
  });
  assert.match(await text(page, "#next"), /in (5 min|4 min)/, "the countdown");
  await checkEvaluations(page, e);
  await checkTables(page, o);
}

async function checkEvaluations(page, e) {
  const rows = await page.locator("#evaluations tbody tr").evaluateAll((all) => all.map((r) => [...r.children].map((c) => c.textContent)));
  assert.equal(rows.length, e.evaluations.length);
  e.evaluations.toReversed().forEach((is, i) => {
    const [end, outcome, ...numbers] = rows[i];
    assert.equal(end.slice(-8), is.end.slice(11, 19), "the end of a window");
    assert.equal(outcome, is.outcome);
    [is.canary, is.stable].forEach((track, t) => {
      const [requests, errors, latency] = numbers.slice(3 * t, 3 * t + 3);
      if (!track) {
        assert.deepEqual([requests, errors, latency], ["–", "–", "–"]);
        return;
      }
      near(requests, track.requests, 0.05, "requests");
      near(errors, (100 * track.errors) / track.requests, 0.005, "errors");
      near(latency, track.quantileSeconds * 1000, 0.05, "the response time");
    });
    if (is.message) assert.equal(rows[i].at(-1), is.message);
  });
  const last = e.evaluations.at(-1);
  const heard = await page.locator("#errors-chart > svg").getAttribute("aria-label");
  assert.match(heard, /^Error rate over the last 60 evaluations\. canary: [0-9.]+ % at last/);
  near(/canary: ([0-9.]+)/.exec(heard)[1], (100 * last.canary.errors) / last.canary.requests, 0.005, "what is heard of the error rate");
  assert.match(await page.locator("#latency-chart > svg").getAttribute("aria-label"), /stable: [0-9.]+ ms at last.*The limit is 300 ms/);
}

async function checkTables(page, o) {
  const cells = (id) => page.locator(`#${id} tbody tr`).evaluateAll((all) => all.map((r) => [...r.children].map((c) => c.textContent)));
  assert.deepEqual((await cells("conditions")).map((c) => c.slice(0, 4)), o.status.conditions.map((c) => [c.type, c.status, c.reason, c.message]));
  assert.deepEqual((await cells("history")).map((c) => [c[0], c[1], c[3], c[6]]),
    o.status.history.map((h) => [String(h.attempt), h.revision, `${h.weight} %`, `${h.reason}: ${h.message}`]));
  const events = (await ask("/events/shop")).items.sort((a, b) => (a.eventTime < b.eventTime ? 1 : -1));
  assert.deepEqual((await cells("events")).map((c) => c.slice(1)), events.map((e) => [e.type, e.reason, e.note]));
  assert.deepEqual((await cells("weight-table")).slice(1).map((c) => c[1]).filter((c) => c !== "–").reverse().slice(0, 4), ["0 %", "5 %", "12.5 %", "20 %"]);
  assert.ok((await text(page, "#conditions")).includes(facts.evil), "harmful text is shown as text");
  assert.ok(!(await page.title()).includes("harmed"), "harmful text was taken for HTML");
  assert.equal(await page.locator("main img, main script").count(), 0);
}

// What changes in the cluster shows without a reload.
async function checkLive(page) {
  await ask("/play/raise/shop/checkout", "POST");
  await poll("the raise shows", async () => (await fact(page, "weights", "Desired")) === "24 %");
  assert.equal(await page.locator("#weights small").nth(1).innerText(), "not confirmed by the gateways yet");
  assert.equal((await page.locator("#weight-table tbody tr").first().locator("td").first().textContent()), "24 %");
}

// An order takes a confirmation, and a cancelled one writes nothing; by keyboard alone.
async function checkAbort(page) {
  const abort = '#orders [data-verb="abort"]';
  const before = (await rollouts())["shop/checkout"];
  assert.deepEqual(await texts(page, "#orders button"), ["Pause", "Promote", "Abort", "Skip"]);
  for (const end of ["Escape", "Enter"]) { // Enter is on Cancel
    await byKeyboard(page, abort, "abort");
    await page.keyboard.press("Enter");
    await page.waitForSelector("#confirm[open]");
    assert.equal(await text(page, "#confirm-says"), 'Attempt 3 of revision "2.4.1" will be rolled back from 24 percent: stable will get all traffic, until the revision changes or you say retry.');
    if (facts.pictures) await page.screenshot({ path: join(facts.pictures, "dialog.png") });
    await page.keyboard.press(end);
    await page.waitForSelector("#confirm:not([open])", { state: "attached" });
    assert.ok(await page.locator(abort).evaluate((b) => b === document.activeElement), "the focus is back on the button");
  }
  const between = (await rollouts())["shop/checkout"];
  assert.equal(between.metadata.resourceVersion, before.metadata.resourceVersion, "a cancelled order has written something");
  await page.keyboard.press("Enter");
  await page.waitForSelector("#confirm[open]");
  await byKeyboard(page, "#confirm-yes", "the confirmation");
  await page.keyboard.press("Enter");
  await poll("the order is written", async () => (await rollouts())["shop/checkout"].metadata.annotations?.["weightedrollout.dev/abort"] === "3");
  await poll("the page says so", async () => (await text(page, "#order-says")).startsWith("abort is written for attempt 3"));
  const after = (await rollouts())["shop/checkout"];
  assert.deepEqual(after.metadata.annotations, { "weightedrollout.dev/abort": "3" });
  assert.deepEqual(after.spec, before.spec);
  assert.deepEqual(after.status, before.status);
  await ask("/play/rollback/shop/checkout", "POST");
  await poll("the rollback shows", async () => (await text(page, "#phase")).endsWith("Rolled back"));
  assert.equal(await text(page, "#announce"), "shop/checkout is Rolled back now");
  await poll("only what makes sense is left", async () => (await texts(page, "#orders button")).join() === "Pause,Retry");
}

// A command has the verb, the attempt and the stage in it.
async function checkApprove(page) {
  await page.goto(new URL("#/shop/payments", page.url()).href);
  await page.click('#orders [data-verb="approve"]');
  await page.click("#confirm-yes");
  const written = await poll("the approval is written", async () => (await rollouts())["shop/payments"].metadata.annotations?.["weightedrollout.dev/command"]);
  const { id, ...rest } = JSON.parse(written);
  assert.deepEqual(rest, { verb: "approve", attempt: 1, stage: 2 });
  assert.match(id, /^dashboard-\w{20,}$/);
}

const steps = [];
async function step(name, run) {
  const began = Date.now();
  await run();
  steps.push(name);
  console.log(`page: ${name} (${Date.now() - began} ms)`);
}

const browser = await launch(facts.chromium);
try {
  const { page, context, faults } = await open(browser, facts.orders);
  await step("the secret goes out of the address, and the cookie is kept from scripts and other sites", async () => {
    await page.waitForSelector("#rows tr");
    assert.equal(new URL(page.url()).hash, "#/");
    const [cookie, ...more] = await context.cookies();
    assert.deepEqual([more.length, cookie.httpOnly, cookie.sameSite], [0, true, "Strict"]);
  });
  await step("the list shows what the API server has", () => checkList(page));
  await step("a rollout opens by keyboard alone", async () => {
    await byKeyboard(page, '[data-key="shop/checkout"] a', "the rollout");
    await page.keyboard.press("Enter");
    await poll("its name has the focus", () => page.locator("#name").evaluate((n) => n === document.activeElement));
  });
  await step("the detail shows what the API server and the controller have", () => checkDetail(page));
  await step("the page looks right at every width, light and dark", () => checkLooks(browser, page, facts));
  await step("a change shows by itself", () => checkLive(page));
  await step("abort is asked back, cancelled, and given by keyboard alone", () => checkAbort(page));
  await step("Escape leads back to the row", async () => {
    await page.keyboard.press("Escape");
    await page.waitForSelector("#list:not([hidden])");
    assert.ok(await page.locator('[data-key="shop/checkout"] a').evaluate((a) => a === document.activeElement));
  });
  await step("approve writes a command", () => checkApprove(page));
  await step("no other site can read or act, and without the secret nobody can", () => checkOthers(browser, context, facts, ask));
  assert.deepEqual(faults, [], "the page had errors, or asked another origin");
  console.log(`page: all ${steps.length} checks passed`);
} finally {
  await browser.close();
}
