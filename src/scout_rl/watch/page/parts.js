// Pieces of the page: cards, charts with a tip, lists that grow, rows that keep their elements.
import { Chart, element, shape } from "./draw.js";
import { count } from "./words.js";

let numbered = 0;

export function card(title, ...children) {
  const id = `card-${numbered++}`;
  return element("section", { "aria-labelledby": id }, element("h2", { id, textContent: title }), ...children);
}

export function text(parent, words) { // write only what changed: a selection in the text survives
  if (parent.textContent !== words) parent.textContent = words;
}

export const link = (href, words, className) => element("a", { href, textContent: words, className: className || "" });

export function reconcile(parent, items, key, make, update) { // an item keeps its element, so focus and selection stay
  const before = new Map([...parent.children].map((child) => [child.dataset.key, child]));
  const focused = parent.contains(document.activeElement) ? document.activeElement : null; // a moved element loses it
  items.forEach((item, i) => {
    const name = String(key(item)), child = before.get(name) || make(item);
    child.dataset.key = name;
    before.delete(name);
    if (update) update(child, item);
    if (parent.children[i] !== child) parent.insertBefore(child, parent.children[i] || null);
  });
  for (const child of before.values()) child.remove();
  if (focused && focused.isConnected && document.activeElement !== focused) focused.focus({ preventScroll: true });
}

export class LongList { // the first `step` items, and a button that shows as many more
  constructor(parent, { key, make, update, step = 20, what = "", more = null }) {
    this.button = element("button", { type: "button", className: "more", hidden: true });
    this.button.addEventListener("click", async () => {
      this.shown += this.step;
      if (more) await more(this.shown);
      this.draw();
    });
    parent.after(this.button);
    Object.assign(this, { parent, key, make, update, step, shown: step, what, items: [], total: 0 });
  }

  set(items, total = items.length) {
    Object.assign(this, { items, total });
    this.draw();
  }

  draw() {
    reconcile(this.parent, this.items.slice(0, this.shown), this.key, this.make, this.update);
    const rest = this.total - Math.min(this.shown, this.items.length);
    this.button.hidden = rest <= 0;
    text(this.button, `Show ${count(Math.min(rest, this.step))} more of ${count(this.total)}${this.what && ` ${this.what}`}`);
  }
}

export class ChartBox { // a titled chart; `note` is one sentence under the title
  constructor(title, height = 170) {
    const svg = shape("svg", { class: "chart", tabindex: "0", role: "img" }), tip = element("div", { className: "tip", hidden: true, role: "status" });
    this.note = element("p", { className: "soft" });
    this.empty = element("p", { className: "empty", hidden: true });
    this.element = element("div", { className: "figure" }, element("h3", { textContent: title }), this.note, element("div", { className: "map" }, svg, tip), this.empty);
    Object.assign(this, { title, svg, height, chart: new Chart(svg, tip) });
  }

  draw(spec, note, label) { // `spec` null: `note` says why there is nothing to draw
    this.spec = spec;
    this.svg.parentElement.hidden = !spec;
    this.note.hidden = !spec || !note;
    this.empty.hidden = Boolean(spec);
    text(spec ? this.note : this.empty, note);
    if (!spec) return;
    this.svg.setAttribute("aria-label", `${this.title}. ${label || note}`);
    this.redraw();
  }

  redraw() { if (this.spec && this.svg.clientWidth) this.chart.draw(this.spec, this.height); }
}

export const SUCCESS = { y: [0, 1], ticks: [[0, "0%"], [0.5, "50%"], [1, "100%"]], margin: { left: 38, top: 12, bottom: 24 } };

export function windowAxis(first, last) { // few numbers, no ticks
  const middle = first + Math.round((last - first) / 2);
  if (last <= first) return [[first, `window ${count(first)}`]];
  return [[first, `window ${count(first)}`], ...(last - first > 3 ? [[middle, count(middle)]] : []), [last, count(last)]];
}

export function tile(label) { // one number that matters; `set` writes it
  const value = element("b"), note = element("small");
  const box = element("div", { className: "tile" }, element("span", { textContent: label }), value, note);
  return { box, set: (words, more = "") => { text(value, words); text(note, more); } };
}

export class Bar { // progress
  constructor() {
    this.fill = element("i");
    this.element = element("span", { className: "progress", "aria-hidden": "true" }, this.fill);
  }

  set(share) {
    this.element.classList.toggle("unplanned", share === null);
    this.fill.style.width = share === null ? "100%" : `${Math.min(1, share) * 100}%`;
  }
}

export function groupDots(groups, worst) { // last held-out success: a dot per group on a line from 0 to 1, the worst in front
  const svg = shape("svg", { class: "dots", viewBox: "0 0 100 14", "aria-hidden": "true", preserveAspectRatio: "none" });
  svg.append(shape("line", { x1: 3, x2: 97, y1: 7, y2: 7, class: "rule" }));
  const entries = Object.entries(groups).sort(([name]) => name === (worst && worst.group) ? 1 : -1);
  for (const [name, success] of entries) svg.append(shape("ellipse", { cx: 3 + 94 * success, cy: 7, rx: name === (worst && worst.group) ? 3.2 : 2, ry: name === (worst && worst.group) ? 5 : 3.2, class: name === (worst && worst.group) ? "worst" : "other" }));
  return svg;
}

export function state(word) {
  return element("span", { className: `state ${word}`, textContent: word });
}

export function cells(...contents) { // a row of a table; explicit roles survive a narrow screen's layout
  return contents.map((content) => element("td", { role: "cell" }, ...(Array.isArray(content) ? content : [content])));
}

export function table(header, className = "") {
  const body = element("tbody", { role: "rowgroup" });
  const head = element("thead", { role: "rowgroup" }, element("tr", { role: "row" }, ...header.map((name) => element("th", { role: "columnheader", scope: "col", textContent: name }))));
  const box = element("div", { className: `scroll ${className}`, tabIndex: 0, role: "region", "aria-label": "table" }, element("table", { role: "table" }, head, body));
  return { box, body };
}
