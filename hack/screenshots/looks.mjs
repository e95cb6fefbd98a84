// How the page looks: nothing is cut off sideways, and every text can be read.
import assert from "node:assert/strict";
import { join } from "node:path";
import { open, poll } from "./browser.mjs";

const sizes = [[1280, 800], [800, 600], [400, 800]];

// checkLooks opens the list and the detail in every size and colour scheme.
export async function checkLooks(browser, page, facts) {
  for (const colorScheme of ["light", "dark"]) {
    const { page: other, context, faults } = await open(browser, facts.orders, { colorScheme });
    for (const [width, height] of sizes) {
      await other.setViewportSize({ width, height });
      for (const [name, hash] of [["list", "#/"], ["detail", "#/shop/checkout"]]) {
        await other.goto(new URL(hash, other.url()).href);
        await poll("it is drawn", () => other.locator(name === "list" ? "#rows tr >> nth=0" : "#errors-chart > svg").isVisible());
        const where = `${name}, ${width} wide, ${colorScheme}`;
        if (name === "detail") assert.match(await other.locator("#phase").innerText(), /Progressing$/, where);
        assert.deepEqual(await other.evaluate(sticking), [], where);
        assert.deepEqual(await other.evaluate(faint), [], where);
        if (facts.pictures) await other.screenshot({ path: join(facts.pictures, `${name}-${width}-${colorScheme}.png`), fullPage: true });
      }
    }
    assert.deepEqual(faults, []);
    await context.close();
  }
}

// sticking lists what sticks out of the page sideways. It runs in the page.
function sticking() {
  const { scrollWidth, clientWidth } = document.documentElement;
  if (scrollWidth <= clientWidth) return [];
  return [...document.body.querySelectorAll("*")].filter((e) => e.getBoundingClientRect().right > clientWidth && !e.closest(".scroll, .unseen, thead"))
    .map((e) => `${e.localName}.${e.getAttribute("class") ?? ""} to ${Math.round(e.getBoundingClientRect().right)}`).concat(`all: ${scrollWidth}`);
}

// faint lists texts whose contrast to what is behind them is below 4.5 (WCAG 2.2, 1.4.3).
// It runs in the page.
function faint() {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgb = (color) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = color;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const luminance = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const behind = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const color = rgb(getComputedStyle(e).backgroundColor);
      if (color[3] === 255) return color;
    }
    return rgb("Canvas");
  };
  const found = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const element = walk.currentNode.parentElement;
    if (walk.currentNode.data.trim() === "" || !element.checkVisibility()) continue;
    const style = getComputedStyle(element);
    const [a, b] = [luminance(rgb(element instanceof SVGElement ? style.fill : style.color)), luminance(behind(element))];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < 4.5) found.push(`${contrast.toFixed(1)}: ${walk.currentNode.data.trim().slice(0, 40)}`);
  }
  return found;
}
