// Pictures of a terminal: a program is run in one of its own, and what stands on its screen
// is drawn by the browser.
import { spawn } from "node:child_process";
import xterm from "@xterm/headless";

// The colours of a terminal, the first eight and their bright ones, on a dark ground.
const colours = ["#3b4252", "#e06c75", "#8cc265", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#d7dae0",
  "#7f848e", "#ff7a85", "#a5e075", "#f0cf8a", "#7cc0ff", "#de9bff", "#6fd3df", "#ffffff"];

// screen runs a command in a terminal of so many columns and rows for a while, and returns
// what stands there then.
export async function screen(command, { columns, rows, milliseconds }) {
  const terminal = new xterm.Terminal({ cols: columns, rows, allowProposedApi: true });
  const child = spawn("script", ["-qfec", `stty cols ${columns} rows ${rows}; ${command}`, "/dev/null"], { stdio: ["pipe", "pipe", "inherit"], env: { ...process.env, TERM: "xterm-256color" } });
  const over = new Promise((done) => child.on("exit", done));
  child.stdout.on("data", (text) => terminal.write(text));
  await new Promise((done) => setTimeout(done, milliseconds));
  const html = draw(terminal);
  child.stdin.write("q");
  const timer = setTimeout(() => child.kill(), 5000);
  await over;
  clearTimeout(timer);
  return html;
}

const escape = (text) => text.replace(/[&<>]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" })[c]);

// draw writes a terminal's screen as HTML, a span for each run of cells that look alike.
function draw(terminal) {
  const lines = [];
  for (let y = 0; y < terminal.rows; y++) {
    const line = terminal.buffer.active.getLine(terminal.buffer.active.viewportY + y);
    const runs = [];
    for (let x = 0; x < terminal.cols; x++) {
      const cell = line.getCell(x);
      if (cell.getWidth() === 0) continue;
      const style = look(cell);
      const text = cell.getChars() || " ";
      if (runs.at(-1)?.style === style) runs.at(-1).text += text;
      else runs.push({ style, text });
    }
    lines.push(runs.map((r) => `<span style="${r.style}">${escape(r.text)}</span>`).join(""));
  }
  return lines.join("\n");
}

function look(cell) {
  const style = [];
  if (cell.isFgPalette() && cell.getFgColor() < colours.length) style.push(`color:${colours[cell.getFgColor()]}`);
  if (cell.isBold()) style.push("font-weight:bold");
  if (cell.isDim()) style.push("opacity:.65");
  if (cell.isInverse()) style.push("background:#d7dae0;color:#1e2127");
  return style.join(";");
}

// picture takes a picture of such HTML.
export async function picture(browser, html, path) {
  const context = await browser.newContext({ deviceScaleFactor: 2, viewport: { width: 1400, height: 900 } });
  const page = await context.newPage();
  await page.setContent(`<pre id="screen" style="display:inline-block;margin:0;padding:16px 20px;background:#1e2127;color:#d7dae0;font:14px/1.3 'DejaVu Sans Mono',monospace">${html}</pre>`);
  await page.locator("#screen").screenshot({ path });
  await context.close();
}
