// Takes the pictures of docs/images from a real run: the demo's API server, gateway,
// Prometheus and controller, a rollout under way, the dashboard in Chromium, and
// watch in a terminal.
//
//   node real.mjs FOLDER
//
// It is made by make screenshots, which builds what it starts.
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { launch, open, poll } from "./browser.mjs";
import { picture, screen } from "./terminal.mjs";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
const bin = process.env.WEIGHTEDROLLOUT_BIN ?? join(root, "bin");
const folder = resolve(process.argv[2] ?? join(root, "docs/images"));
const patience = 8 * 60000;

// start runs a program of bin, and gathers what it says.
function start(name, args) {
  const child = spawn(join(bin, name), args, { cwd: root, stdio: ["ignore", "pipe", "pipe"] });
  const program = { child, said: "", over: false };
  for (const out of [child.stdout, child.stderr]) out.on("data", (text) => { program.said += text; });
  child.on("error", (e) => { program.said += e.message; program.over = true; });
  child.on("exit", () => { program.over = true; });
  return program;
}

const heard = (program, pattern, what) => poll(what, () => {
  const found = pattern.exec(program.said);
  if (!found && program.over) throw new Error(`it has ended before ${what}:\n${program.said}`);
  return found;
}, patience);

async function end(program) {
  if (!program || program.over) return;
  program.child.kill("SIGINT");
  await poll("it has ended", () => program.over);
}

function chromium() {
  for (const name of ["chromium", "chromium-browser"]) {
    const found = spawnSync("sh", ["-c", `command -v ${name}`], { encoding: "utf8" });
    if (found.status === 0) return found.stdout.trim();
  }
  throw new Error("there is no chromium: apt-get install -y chromium");
}

// The demo's good canary once more, with time to look at it at 20 percent.
const again = { spec: { revision: "2.4.2", plan: { stages: [{ weight: 1, soak: "5s" }, { weight: 5, soak: "5s" }, { weight: 20, soak: "3m" }, { weight: 50, soak: "10s", approval: "Required" }] } } };

async function pictures(browser, address) {
  const at = (hash) => new URL(hash, address).href;
  const { page, context } = await open(browser, address, { colorScheme: "light" });
  await page.waitForSelector("#rows tr"); // the cookie is there
  const detail = await context.newPage();
  await detail.emulateMedia({ colorScheme: "dark" });
  await detail.goto(at("#/shop/checkout"));
  await page.setViewportSize({ width: 1280, height: 480 });
  await poll("a canary at 20 percent has been looked at for a while", async () => {
    if ((await detail.locator("#weights dd > span").count()) === 0) return false;
    const weight = await detail.locator("#weights dd > span").first().innerText();
    return weight === "20 %" && (await detail.locator("#evaluations tbody tr").count()) >= 50;
  }, patience);
  await page.screenshot({ path: join(folder, "dashboard-light.png") });
  await detail.setViewportSize({ width: 1280, height: 1540 });
  await detail.screenshot({ path: join(folder, "dashboard-dark.png") });
  await detail.emulateMedia({ colorScheme: "light" });
  await detail.setViewportSize({ width: 400, height: 1100 });
  await detail.screenshot({ path: join(folder, "dashboard-narrow.png") });
}

const secrets = mkdtempSync(join(tmpdir(), "weightedrollout-screenshots-"));
let demo, dashboard, browser;
try {
  const executable = chromium();
  demo = start("demo", ["--bin", bin, "--keep"]);
  const [, kubeconfig] = await heard(demo, /KUBECONFIG=(\S+)/, "the demo is over");
  const [, token, evidence] = await heard(demo, /Bearer (\S+)' \\\s+(https:\/\/[^/]+)\//, "it names the evidence");
  writeFileSync(join(secrets, "token"), token, { mode: 0o600 });
  dashboard = start("kubectl-weightedrollout", ["dashboard", "-A", "--allow-actions", "--kubeconfig", kubeconfig,
    "--evidence", evidence, "--token-file", join(secrets, "token"), "--insecure-skip-tls-verify"]);
  const [address] = await heard(dashboard, /http:\/\/127\S+/, "the dashboard names its address");
  const patched = spawnSync(join(bin, "kubectl"), ["--kubeconfig", kubeconfig, "patch", "wr", "checkout", "-n", "shop", "--type=merge", "-p", JSON.stringify(again)], { encoding: "utf8" });
  if (patched.status !== 0) throw new Error(patched.stderr);
  browser = await launch(executable);
  await pictures(browser, address);
  const watch = `${join(bin, "kubectl-weightedrollout")} watch checkout -n shop --kubeconfig ${kubeconfig} --evidence ${evidence} --token-file ${join(secrets, "token")} --insecure-skip-tls-verify`;
  for (const [name, columns, rows] of [["watch", 80, 24], ["watch-narrow", 44, 24]]) {
    await picture(browser, await screen(watch, { columns, rows, milliseconds: 6000 }), join(folder, `${name}.png`));
  }
  console.log(`screenshots: ${folder}/{dashboard-light,dashboard-dark,dashboard-narrow,watch,watch-narrow}.png`);
} finally {
  await browser?.close();
  await end(dashboard);
  await end(demo);
  rmSync(secrets, { recursive: true, force: true });
}
