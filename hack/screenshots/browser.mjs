// A browser that notes what goes wrong in it.
import { chromium } from "playwright-core";

export async function launch(executablePath) {
  // Root may run Chromium only without its sandbox, and a container has little /dev/shm.
  const args = ["--disable-dev-shm-usage", "--disable-background-networking", "--disable-component-update"];
  if (process.getuid?.() === 0) args.push("--no-sandbox");
  return chromium.launch({ executablePath, args });
}

// open opens an address in a window of its own. faults collects errors of the page, words
// on its console, and requests to any other origin.
export async function open(browser, address, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, timezoneId: "UTC", reducedMotion: "reduce", ...options });
  const page = await context.newPage();
  const faults = [];
  const origin = new URL(address).origin;
  page.on("pageerror", (e) => faults.push(`error: ${e.message}`));
  page.on("console", (m) => {
    if (["error", "warning"].includes(m.type())) faults.push(`console: ${m.text()}`);
  });
  page.on("request", (r) => {
    const at = new URL(r.url());
    if (at.origin !== origin && at.protocol !== "data:") faults.push(`a request to ${r.url()}`);
  });
  await page.goto(address);
  return { page, context, faults };
}

// poll waits until a condition gives something, and says what it waited for if it does not.
export async function poll(what, condition, patience = 60000) {
  const end = Date.now() + patience;
  for (;;) {
    const found = await condition();
    if (found) return found;
    if (Date.now() > end) throw new Error(`waited in vain until ${what}`);
    await new Promise((done) => setTimeout(done, 100));
  }
}

export async function input() {
  let text = "";
  for await (const part of process.stdin) text += part;
  return JSON.parse(text);
}
