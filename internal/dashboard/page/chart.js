// Lines over time, as SVG.
import { s } from "./dom.js";

const edge = { top: 12, right: 12, bottom: 24, left: 52 };
const height = 190;

// above is the end of an axis that has room for a value: a short number times a power of
// ten.
export function above(value) {
  if (!(value > 0)) return 1;
  const room = value * 1.05;
  const power = 10 ** Math.floor(Math.log10(room));
  return [1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10].map((n) => n * power).find((n) => n >= room) ?? 10 * power;
}

// draw puts a chart into an element: {title, says, from, to, top, write, lines, limit,
// since}. Times are milliseconds. A line is {name, style, step, points: [[time, value or
// null]]}; a null leaves a gap. says is what somebody hears who does not see it.
export function draw(element, chart) {
  const width = Math.max(element.clientWidth, 240);
  const x = (at) => edge.left + ((at - chart.from) / Math.max(chart.to - chart.from, 1)) * (width - edge.left - edge.right);
  const y = (value) => height - edge.bottom - (Math.min(value, chart.top) / chart.top) * (height - edge.top - edge.bottom);
  const svg = s("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": `${chart.title}. ${chart.says}` });
  svg.append(...grid(chart, width, x, y));
  if (chart.limit !== undefined && chart.limit <= chart.top) {
    svg.append(s("line", { class: "limit", x1: edge.left, x2: width - edge.right, y1: y(chart.limit), y2: y(chart.limit) }));
  }
  if (chart.since > chart.from && chart.since < chart.to) {
    svg.append(s("line", { class: "since", x1: x(chart.since), x2: x(chart.since), y1: edge.top, y2: height - edge.bottom }));
  }
  for (const line of chart.lines) {
    svg.append(s("path", { class: `line ${line.style}`, d: path(line, x, y) }));
    for (const [at, value] of alone(line)) svg.append(s("circle", { class: `dot ${line.style}`, cx: x(at), cy: y(value), r: 2.5 }));
  }
  element.replaceChildren(svg, legend(chart));
}

function grid(chart, width, x, y) {
  const parts = [];
  for (const value of [0, chart.top / 2, chart.top]) {
    parts.push(s("line", { class: value === 0 ? "axis" : "grid", x1: edge.left, x2: width - edge.right, y1: y(value), y2: y(value) }));
    parts.push(s("text", { class: "tick", x: edge.left - 8, y: y(value) + 4, "text-anchor": "end", text: chart.write(value) }));
  }
  const ticks = width < 420 ? 2 : 4;
  // Ticks are not on whole minutes: in a short span that would show.
  const seconds = chart.to - chart.from < 30 * 60000;
  for (let i = 0; i <= ticks; i++) {
    const at = chart.from + ((chart.to - chart.from) * i) / ticks;
    const anchor = i === 0 ? "start" : i === ticks ? "end" : "middle";
    const time = new Date(at).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", second: seconds ? "2-digit" : undefined });
    parts.push(s("text", { class: "tick", x: x(at), y: height - 6, "text-anchor": anchor, text: time }));
  }
  return parts;
}

function path(line, x, y) {
  let d = "";
  let last = null;
  for (const [at, value] of line.points) {
    if (value === null || value === undefined) {
      last = null;
      continue;
    }
    if (last === null) d += `M${round(x(at))} ${round(y(value))}`;
    else if (line.step) d += `H${round(x(at))}V${round(y(value))}`;
    else d += `L${round(x(at))} ${round(y(value))}`;
    last = value;
  }
  return d;
}

const round = (n) => Math.round(n * 10) / 10;

// alone are the points with a gap on both sides, which no line shows.
function alone(line) {
  const known = (p) => p !== undefined && p[1] !== null && p[1] !== undefined;
  return line.points.filter((p, i) => known(p) && !known(line.points[i - 1]) && !known(line.points[i + 1]));
}

function legend(chart) {
  const list = document.createElement("ul");
  list.className = "legend";
  list.setAttribute("aria-hidden", "true"); // the picture's own words say it
  const add = (style, name) => {
    const item = document.createElement("li");
    item.append(s("svg", { width: 26, height: 8, viewBox: "0 0 26 8" }, s("line", { class: style, x1: 1, x2: 25, y1: 4, y2: 4 })), name);
    list.append(item);
  };
  for (const line of chart.lines) add(`line ${line.style}`, line.name);
  if (chart.limit !== undefined) add("limit", `limit ${chart.write(chart.limit)}${chart.limit > chart.top ? ", above" : ""}`);
  return list;
}
