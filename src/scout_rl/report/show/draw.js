// The drawing that the report and the watch page share: level colours, heat map, charts, tips. No library, no network.
// The report has this file inline, before page.js; the watch page imports it. Text of records is only ever textContent.

export const NONE = 255; // a cell of a map without a rollout
export const UNIT = 200; // shares and mean levels are stored in 200ths
export const LINES = ["#0072b2", "#d98200", "#009e73", "#cc79a7"], RETREAT = "#e8000b";
export const DASHES = ["", "7 4", "2 3", "9 3 2 3"], DASH_WORDS = ["solid", "dashed", "dotted", "dash-dot"];

export function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null) continue;
    if (name in made) made[name] = value; else made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

export function shape(tag, attributes = {}, ...children) { // an SVG element
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) if (value !== undefined && value !== null) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

export function filled(colour, tag, attributes) { // a colour in the style may be a variable of the look
  const made = shape(tag, attributes);
  made.style.fill = colour;
  return made;
}

export async function unpack({ layout, data }) { // name -> array, from base64 of deflate of the arrays one after the other
  const bytes = Uint8Array.from(atob(data), (c) => c.charCodeAt(0)), arrays = {};
  const buffer = await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).arrayBuffer();
  let offset = 0;
  for (const [name, size, length] of layout) {
    const part = buffer.slice(offset, offset + size * length);
    arrays[name] = size === 1 ? new Uint8Array(part) : size === 2 ? new Uint16Array(part) : new Uint32Array(part);
    offset += size * length;
  }
  return arrays;
}

export const clamp = (value, low, high) => Math.max(low, Math.min(high, value));

export class Levels { // colours and names of levels; `stops`, `target` and `easiest` are those of records/level_colours.py
  constructor({ stops, target, easiest }) { Object.assign(this, { stops, target, easiest }); }

  rgb(level, levels) { // the mean level of a column lies between two levels
    const place = (level / Math.max(1, levels - 1)) * (this.stops.length - 1), i = Math.min(Math.floor(place), this.stops.length - 2);
    return this.stops[i].map((v, k) => Math.round(v + (this.stops[i + 1][k] - v) * (place - i)));
  }

  css(level, levels) { return `rgb(${this.rgb(level, levels)})`; }

  name(level, levels) { return `level ${level}${level ? level === levels - 1 ? `: ${this.easiest}` : "" : `: ${this.target}`}`; }

  legend(box, levels, ...others) { // `others`: [colour, text] pairs after the levels
    const items = [...Array(levels).keys()].map((level) => [this.css(level, levels), this.name(level, levels)]);
    box.replaceChildren(...[...items, ...others].map(([background, text]) => {
      const swatch = element("i");
      swatch.style.background = background;
      return element("span", {}, swatch, text);
    }));
  }
}

export class Tip { // a box of lines beside a point of the drawing around it
  constructor(box) { this.box = box; }

  show([head, ...rest], x, y, width, height) {
    const box = this.box;
    box.replaceChildren(element("b", { textContent: head }), ...rest.map((line) => element("span", { textContent: line })));
    box.hidden = false;
    const left = x + box.offsetWidth + 18 < width ? x + 14 : Math.max(0, x - box.offsetWidth - 14);
    box.style.left = `${Math.min(left, Math.max(0, width - box.offsetWidth))}px`;
    box.style.top = `${Math.max(0, Math.min(y + 14, height - box.offsetHeight))}px`;
  }

  hide() { this.box.hidden = true; }
}

export class HeatMap {
  // Contexts from top to bottom, windows from left to right. `map`: { contexts, windows, cols, width (windows per column), grid
  // (Uint8Array [cols, contexts]), scale (level per unit of the grid), levels, group (by context, or null), retreats(context) ->
  // windows, mark (their width) }. `rows` are contexts in the order to draw. `words(window, row)` are the lines of the tip.
  constructor(canvas, tip, colours, words, choose = null) {
    Object.assign(this, { canvas, tip: new Tip(tip), colours, words, choose, map: null, cursor: null });
    canvas.addEventListener("pointermove", (event) => this.point(event));
    canvas.addEventListener("pointerdown", (event) => this.point(event));
    canvas.addEventListener("pointerleave", () => this.tip.hide());
    canvas.addEventListener("blur", () => this.tip.hide());
    canvas.addEventListener("keydown", (event) => this.key(event));
    if (choose) canvas.addEventListener("click", () => this.cursor && choose(this.cursor.window, this.cursor.row));
  }

  draw(map, rows, height = clamp(rows.length * 3, 160, 520)) {
    const canvas = this.canvas, ratio = window.devicePixelRatio || 1;
    Object.assign(this, { map, rows, height, width: canvas.clientWidth });
    canvas.style.height = `${height}px`;
    canvas.width = Math.max(1, Math.round(this.width * ratio));
    canvas.height = Math.round(height * ratio);
    const pen = canvas.getContext("2d");
    if (map.windows && rows.length) {
      pen.putImageData(this.image(), 0, 0);
      pen.setTransform(ratio, 0, 0, ratio, 0, 0);
      this.marks(pen);
    }
    if (this.cursor && !this.tip.box.hidden) this.show(this.cursor.window, this.cursor.row);
  }

  image() { // one pixel of the screen at a time, so that a large bank costs no more than a small one
    const { map, rows, canvas } = this, { width, height } = canvas, image = new ImageData(width, height);
    const pixels = new Uint32Array(image.data.buffer), table = this.table(), columns = new Uint32Array(width);
    for (let x = 0; x < width; x++) columns[x] = Math.min(map.cols - 1, Math.floor((((x + 0.5) / width) * map.windows) / map.width)) * map.contexts;
    let before = -1;
    for (let y = 0; y < height; y++) {
      const row = Math.floor(((y + 0.5) / height) * rows.length), context = rows[row];
      if (row === before) pixels.copyWithin(y * width, (y - 1) * width, y * width);
      else for (let x = 0; x < width; x++) pixels[y * width + x] = table[map.grid[columns[x] + context]];
      before = row;
    }
    return image;
  }

  table() { // grid value -> colour, in the byte order of the screen
    const { scale, levels } = this.map, bytes = new Uint8ClampedArray(256 * 4);
    for (let v = 0; v < NONE; v++) if (v * scale <= levels - 1 + 1e-9) bytes.set([...this.colours.rgb(v * scale, levels), 255], v * 4);
    return new Uint32Array(bytes.buffer);
  }

  marks(pen) { // group borders, and moves toward easier starts
    const { map, rows, width, height } = this, one = height / rows.length;
    pen.strokeStyle = "#ffffff"; pen.lineWidth = 2;
    pen.fillStyle = RETREAT;
    rows.forEach((x, row) => {
      if (map.group && row && map.bordered !== false && map.group[x] !== map.group[rows[row - 1]]) {
        pen.beginPath(); pen.moveTo(0, row * one); pen.lineTo(width, row * one); pen.stroke();
      }
      if (map.retreats) for (const w of map.retreats(x)) pen.fillRect((w / map.windows) * width, row * one, map.mark || 2, Math.max(1.5, one));
    });
  }

  show(window, row) {
    const { map, rows, width, height } = this;
    window = clamp(window, 0, map.windows - 1); row = clamp(row, 0, rows.length - 1);
    this.cursor = { window, row };
    this.tip.show(this.words(window, row), ((window + 0.5) / map.windows) * width, ((row + 0.5) / rows.length) * height, width, height);
  }

  point(event) {
    if (!this.map || !this.map.windows || !this.rows.length) return;
    const box = this.canvas.getBoundingClientRect();
    this.show(Math.floor(((event.clientX - box.left) / box.width) * this.map.windows), Math.floor(((event.clientY - box.top) / box.height) * this.rows.length));
  }

  key(event) {
    if (!this.map || !this.map.windows || !this.rows.length) return;
    if (event.key === "Enter" && this.choose && this.cursor) { event.preventDefault(); this.choose(this.cursor.window, this.cursor.row); }
    if (event.key === "Escape") this.tip.hide();
    const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (!way) return;
    event.preventDefault();
    const far = event.shiftKey ? 10 : 1, from = this.cursor || { window: 0, row: 0 };
    this.show(from.window + way[0] * far, from.row + way[1] * far);
  }

  forget() { this.cursor = null; this.tip.hide(); }
}

export class Chart {
  // Lines and stacked areas over windows, as SVG. `spec`: { x: [first, last], y: [low, high], ticks: [[value, text]], lines: [{ name,
  // x, y, colour, dash, weight, quiet, step, label }], areas: [{ x, low, high, colour, label, inside }], caption, axis (numbers of the x axis), margin,
  // marks(chart) -> more shapes, words(x) -> lines of the tip }. A null in `y` is a gap.
  constructor(svg, tip = null) {
    Object.assign(this, { svg, tip: tip && new Tip(tip), spec: null, cursor: null });
    if (!tip) return;
    svg.addEventListener("pointermove", (event) => this.point(event));
    svg.addEventListener("pointerdown", (event) => this.point(event));
    for (const name of ["pointerleave", "blur"]) svg.addEventListener(name, () => this.leave());
    svg.addEventListener("keydown", (event) => {
      const way = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (event.key === "Escape") this.leave();
      if (!way || !this.spec || !this.xs.length) return;
      event.preventDefault();
      this.show(clamp(this.cursor === null ? (way > 0 ? 0 : this.xs.length - 1) : this.cursor + way * (event.shiftKey ? 10 : 1), 0, this.xs.length - 1));
    });
  }

  draw(spec, height = 160) {
    const { svg } = this, width = Math.max(60, svg.clientWidth || svg.parentElement.clientWidth);
    const labels = [...(spec.lines || []), ...(spec.areas || [])].filter((each) => each.label && each.x.length);
    const room = labels.length ? Math.min(width * 0.4, 20 + 6.6 * Math.max(...labels.map((line) => line.label.length))) : 0;
    const margin = { top: 10, right: room, bottom: 22, left: 0, ...spec.margin };
    Object.assign(this, { spec, width, height, margin });
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.style.height = `${height}px`;
    this.xs = [...new Set((spec.lines || []).concat(spec.areas || []).flatMap((line) => [...line.x]))].sort((p, q) => p - q);
    svg.replaceChildren(...this.grid(), ...(spec.areas || []).map((area) => this.area(area)), ...this.inFront().map((line) => this.line(line)), ...(spec.marks ? spec.marks(this) : []), ...this.labels(labels), ...this.inside(), ...this.axis());
    this.pointer = shape("g", { class: "pointer", "aria-hidden": "true" });
    svg.append(this.pointer);
    if (this.cursor !== null && this.tip && !this.tip.box.hidden) this.show(Math.min(this.cursor, this.xs.length - 1));
  }

  at(x) { const [first, last] = this.spec.x, { left, right } = this.margin; return left + ((x - first) / (last - first || 1)) * (this.width - left - right); }

  up(y) { const [low, high] = this.spec.y, { top, bottom } = this.margin; return this.height - bottom - ((clamp(y, low, high) - low) / (high - low || 1)) * (this.height - top - bottom); }

  inFront() { return [...(this.spec.lines || [])].sort((p, q) => (p.weight || 1.8) - (q.weight || 1.8)); } // the heaviest line is drawn last

  grid() {
    const end = this.width - this.margin.right;
    return (this.spec.ticks || [[0], [0.5], [1]]).flatMap(([value, text]) => {
      const y = this.up(value), rule = shape("line", { class: "rule", x1: this.margin.left, x2: end, y1: y, y2: y });
      return text === undefined ? [rule] : [rule, shape("text", { class: "tick", x: this.margin.left - 7, y: y + 4, "text-anchor": "end" }, text)];
    });
  }

  axis() {
    const { caption, axis = [] } = this.spec, y = this.height - 6;
    const texts = axis.map(([x, text], k) => shape("text", { class: "tick", x: this.at(x), y, "text-anchor": k === 0 ? "start" : k === axis.length - 1 ? "end" : "middle" }, text));
    return caption ? [shape("text", { class: "caption", x: 4, y: 14 }, caption), ...texts] : texts;
  }

  line({ x, y, colour, dash, weight = 1.8, quiet, step }) { // a step holds its value until the next point
    let path = "", down = false;
    for (let i = 0; i < x.length; i++) {
      if (y[i] === null || Number.isNaN(y[i])) { down = false; continue; }
      const across = this.at(x[i]).toFixed(1), up = this.up(y[i]).toFixed(1);
      path += !down ? `M${across} ${up}` : step ? `H${across}V${up}` : `L${across} ${up}`;
      down = true;
    }
    const made = shape("path", { d: path, fill: "none", "stroke-width": weight, "stroke-dasharray": dash || null, "stroke-linejoin": "round", "stroke-linecap": dash ? "butt" : "round", opacity: quiet ? 0.6 : null });
    made.style.stroke = colour;
    return made;
  }

  area({ x, low, high, colour }) {
    const point = (i, values) => `${this.at(x[i]).toFixed(1)} ${this.up(values[i]).toFixed(1)}`, all = [...x.keys()];
    return filled(colour, "path", { class: "area", d: all.length ? `M${all.map((i) => point(i, high)).join("L")}L${all.reverse().map((i) => point(i, low)).join("L")}Z` : "" });
  }

  labels(labelled) { // beside the end of each line or area, pushed apart
    const known = (values, i) => i >= 0 && (values[i] === null || Number.isNaN(values[i])) ? known(values, i - 1) : i;
    const placed = labelled.map((each) => {
      const i = known(each.y || each.low, each.x.length - 1);
      if (i < 0) return null;
      const y = each.y ? this.up(each.y[i]) : (this.up(each.low[i]) + this.up(each.high[i])) / 2;
      return { line: each, x: this.at(each.x[i]), own: each.y ? y : null, y };
    }).filter(Boolean).sort((p, q) => p.y - q.y);
    for (let k = 1; k < placed.length; k++) placed[k].y = Math.max(placed[k].y, placed[k - 1].y + 15);
    const over = placed.length ? Math.max(0, placed[placed.length - 1].y - (this.height - 12)) : 0;
    if (over) for (let k = placed.length - 1, limit = this.height - 12; k >= 0; k--, limit -= 15) placed[k].y = Math.min(placed[k].y, limit);
    const right = this.width - this.margin.right, fits = Math.max(3, Math.floor((this.margin.right - 18) / 6.4));
    return placed.flatMap(({ line, x, own, y }) => {
      const edge = own === null || line.x.length < 2 || x > right - 0.15 * this.width ? right : x; // a line that ends early has its label there
      const text = line.label.length > fits ? `${line.label.slice(0, fits - 1)}…` : line.label;
      const label = shape("text", { class: line.weight > 2.5 ? "label front" : "label", x: edge + 14, y: y + 4 }, text);
      if (text !== line.label) label.append(shape("title", {}, line.label));
      return [filled(line.colour, "circle", { class: "key", cx: edge + 7, cy: y, r: 3.2 }), ...(own === null ? [] : [filled(line.colour, "circle", { cx: x, cy: own, r: 2.6 })]), label];
    });
  }

  inside() { // the name of an area, where it is thickest and no other name stands
    const placed = [];
    return (this.spec.areas || []).filter((area) => area.inside && area.x.length).flatMap(({ x, low, high, inside }) => {
      let best = 0;
      x.forEach((_, i) => { if (high[i] - low[i] > high[best] - low[best]) best = i; });
      const half = inside.length * 3.4, y = (this.up(low[best]) + this.up(high[best])) / 2 + 4;
      const middle = clamp(this.at(x[best]), this.margin.left + half, this.width - this.margin.right - half);
      if (this.up(low[best]) - this.up(high[best]) < 20 || placed.some((other) => Math.abs(other.y - y) < 15 && Math.abs(other.middle - middle) < other.half + half)) return [];
      placed.push({ middle, half, y });
      return [shape("text", { class: "label", "text-anchor": "middle", x: middle, y }, inside)];
    });
  }

  point(event) {
    if (!this.spec || !this.xs.length || !this.spec.words) return;
    const box = this.svg.getBoundingClientRect(), x = ((event.clientX - box.left) / box.width) * this.width;
    let best = 0;
    this.xs.forEach((value, i) => { if (Math.abs(this.at(value) - x) < Math.abs(this.at(this.xs[best]) - x)) best = i; });
    this.show(best);
  }

  show(index) {
    if (!this.spec.words || index < 0) return;
    this.cursor = index;
    const value = this.xs[index], x = this.at(value), bottom = this.height - this.margin.bottom;
    const dots = (this.spec.lines || []).flatMap((line) => {
      const i = line.x.indexOf(value);
      return i < 0 || line.y[i] === null || Number.isNaN(line.y[i]) ? [] : [filled(line.colour, "circle", { cx: x, cy: this.up(line.y[i]), r: 3.2, class: "dot" })];
    });
    this.pointer.replaceChildren(shape("line", { class: "hair", x1: x, x2: x, y1: this.margin.top, y2: bottom }), ...dots);
    this.tip.show(this.spec.words(value), x, this.margin.top, this.width, this.height + 60);
  }

  leave() { this.cursor = null; this.tip.hide(); if (this.pointer) this.pointer.replaceChildren(); }
}

export function whenResized(draw) { // and when light turns dark
  let waiting = 0;
  addEventListener("resize", () => { clearTimeout(waiting); waiting = setTimeout(draw, 80); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
}
