// Builds elements, and changes a page in place, so that nothing jumps and the focus stays.

/** An element with attributes, handlers (onclick, ...) and children; texts are never markup. */
export function h(tag, attributes, ...children) {
  const made = tag === "svg" || tag === "path" ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) made[name] = value;
    else if (name === "style") Object.assign(made.style, value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat(Infinity).filter(one => one !== null && one !== undefined && one !== false));
  return made;
}

/** Make `old` look like `made`, and keep its elements where they have the same place and tag. */
export function morph(old, made) {
  const fresh = [...made.childNodes], known = [...old.childNodes];
  fresh.forEach((node, index) => {
    const was = known[index];
    if (!was) return old.append(node);
    if (was.nodeType !== node.nodeType || was.nodeName !== node.nodeName) return was.replaceWith(node);
    if (node.nodeType === Node.TEXT_NODE) { if (was.data !== node.data) was.data = node.data; return; }
    adopt(was, node);
    morph(was, node);
  });
  known.slice(fresh.length).forEach(node => node.remove());
}

function adopt(was, node) {
  for (const { name } of [...was.attributes]) if (!node.hasAttribute(name) && name !== "style") was.removeAttribute(name);
  for (const { name, value } of node.attributes) if (name !== "style" && was.getAttribute(name) !== value) was.setAttribute(name, value);
  if (node.style) for (const name of ["left", "width", "background"]) if (was.style[name] !== node.style[name]) was.style[name] = node.style[name];
  for (const name of ["onclick", "onsubmit", "onchange"]) was[name] = node[name];
}

export const number = value => value === null || value === undefined ? "–" : value.toLocaleString("en-US");
export const pill = (kind, text) => h("span", { class: `pill ${kind}` }, text);

/** A table; a column is [title, class] and a row is a list of cells. */
export function table(columns, rows) {
  return h("div", { class: "scroll" }, h("table", {},
    h("thead", {}, h("tr", {}, columns.map(([title, kind]) => h("th", { class: kind, scope: "col" }, title)))),
    h("tbody", {}, rows.map(cells => h("tr", {}, cells.map((cell, index) => h("td", { class: columns[index][1] }, cell)))))));
}

export const card = (head, ...body) => h("section", { class: "card" }, h("div", { class: "head" }, head), ...body);

/** A small line of values over time. */
export function trend(values, kind = "trend") {
  const top = Math.max(1, ...values), step = 100 / Math.max(1, values.length - 1);
  const d = values.map((value, i) => `${i ? "L" : "M"}${(i * step).toFixed(1)} ${(28 - 26 * value / top).toFixed(1)}`).join("");
  return h("svg", { class: kind, viewBox: "0 0 100 30", preserveAspectRatio: "none", role: "img", "aria-label": `latest ${values.at(-1) ?? 0}` }, h("path", { d, "vector-effect": "non-scaling-stroke" }));
}
