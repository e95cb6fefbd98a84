// Making elements. Every text goes in as text, never as HTML.

// h makes an element; properties are attributes, but for text and on.
export function h(tag, properties = {}, ...children) {
  return fill(document.createElement(tag), properties, children);
}

// s makes an element of SVG.
export function s(tag, properties = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), properties, children);
}

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "text") element.textContent = value;
    else if (name === "on") for (const [event, run] of Object.entries(value)) element.addEventListener(event, run);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((c) => c !== undefined && c !== null && c !== ""));
  return element;
}

export const byId = (id) => document.getElementById(id);

// setText changes a text only if it is another one, so that nothing is read out again.
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

const drawn = new WeakMap();

// whenChanged draws an element anew only if what it shows has changed, so that focus,
// scrolling and selection stay.
export function whenChanged(element, data, draw) {
  const text = JSON.stringify(data);
  if (drawn.get(element) === text) return;
  drawn.set(element, text);
  draw(element);
}

// table fills a table with rows of texts or elements. Columns are [title, is a number].
export function table(element, columns, rows, none) {
  whenChanged(element, [columns, rows], () => {
    if (rows.length === 0) {
      element.replaceChildren(h("tbody", {}, h("tr", {}, h("td", { class: "muted", text: none }))));
      return;
    }
    // The roles are said again, since narrow pages show each row as a block.
    const cell = (value, i) => h(i === 0 ? "th" : "td", {
      class: columns[i][1] ? "num" : null, scope: i === 0 ? "row" : null, role: i === 0 ? "rowheader" : "cell", "data-label": columns[i][0], text: value,
    });
    const head = ([title, number]) => h("th", { scope: "col", role: "columnheader", class: number ? "num" : null, text: title });
    element.setAttribute("role", "table");
    element.replaceChildren(
      h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, ...columns.map(head))),
      h("tbody", { role: "rowgroup" }, ...rows.map((row) => h("tr", { role: "row" }, ...row.map(cell)))),
    );
  });
}

// facts fills a list of names and values.
export function facts(element, pairs) {
  whenChanged(element, pairs, () => {
    element.replaceChildren(...pairs.map(([name, value, note]) =>
      h("div", {}, h("dt", { text: name }), h("dd", {}, h("span", { text: value }), note ? h("small", { text: note }) : null))));
  });
}
