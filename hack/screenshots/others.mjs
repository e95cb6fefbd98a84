// What must not work: other sites in the same browser, and visitors without the secret.
import assert from "node:assert/strict";
import { open, poll } from "./browser.mjs";

export async function checkOthers(browser, context, facts, ask) {
  const { origin, port } = new URL(facts.orders);
  // The oracle's two names are another origin of the same site, and another site.
  for (const site of [facts.oracle, facts.oracle.replace("127.0.0.1", "localhost")]) {
    const page = await context.newPage(); // with the cookies of the dashboard
    await page.goto(site);
    for (const mode of ["cors", "no-cors"]) {
      for (const type of ["application/json", "text/plain"]) {
        const came = await page.evaluate(attack, { to: `${origin}/api/order`, mode, type });
        assert.equal(came, "", `${site} was answered: ${came}`);
      }
      assert.equal(await page.evaluate(attack, { to: `${origin}/api/stream`, mode }), "", `${site} has read the stream`);
    }
    await page.evaluate(frame, origin);
    await poll("the frame is refused", () => page.frames().some((f) => f.url().startsWith("chrome-error:")));
    await page.close();
  }
  const { items } = await ask("/rollouts");
  const search = items.find((o) => o.metadata.name === "search");
  assert.equal(search.metadata.annotations, undefined, "another site has given an order");
  assert.ok(!search.spec.paused, "another site has paused a rollout");

  const { page: stranger, context: strange } = await open(browser, `${origin}/`);
  await poll("a visitor without the secret is told so", async () => (await stranger.locator("#behind").innerText()).startsWith("Open the address"));
  assert.equal(await stranger.locator("#rows tr").count(), 0);
  await strange.close();

  const { page: reader, context: reading } = await open(browser, facts.readOnly);
  await reader.click('[data-key="blog/front"] a');
  await poll("it is drawn", () => reader.locator("#path > li").count());
  assert.equal(await reader.locator("#mode").innerText(), "read-only");
  assert.equal(await reader.locator("#orders button").count(), 0);
  await reading.setOffline(true);
  await reader.evaluate(() => document.dispatchEvent(new Event("visibilitychange"))); // it asks anew
  await poll("the page says that it is behind", async () => (await reader.locator("#behind").innerText()).startsWith("These data are behind"));
  await reading.setOffline(false);
  await poll("the page comes back by itself", async () => (await reader.locator("#link").innerText()) === "Live" && (await reader.locator("#behind").isHidden()));
  await reading.close();
  assert.notEqual(port, new URL(facts.readOnly).port);
}

// attack runs in the other site's page: it is empty unless something comes back that can
// be read.
async function attack({ to, mode, type }) {
  try {
    const body = JSON.stringify({ rollout: "shop/search", verb: "pause", stand: {} });
    const response = await fetch(to, type ? { method: "POST", mode, credentials: "include", headers: { "Content-Type": type }, body } : { mode, credentials: "include" });
    if (response.type === "opaque") return "";
    return `${response.status} ${await response.text()}`;
  } catch {
    return "";
  }
}

// frame puts the dashboard into a frame of the other site.
function frame(origin) {
  const frame = document.createElement("iframe");
  frame.src = `${origin}/`;
  document.body.append(frame);
}
