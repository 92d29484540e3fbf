// The map of a run: contexts by windows. Columns are kept here, and only new ones are asked for.
import { HeatMap, NONE, RETREAT, UNIT, clamp, element, unpack } from "./draw.js";
import { card, text, windowAxis } from "./parts.js";
import { get } from "./server.js";
import { count, lasting, plural } from "./words.js";

const COLUMNS = 240, GRIDS = ["frontier", "mean", "tried", "won"], PAGE = 100;
const ORDERS = { group: "by group", frontier: "furthest first", behind: "furthest behind first", move: "latest move first", bank: "bank order" };

export class Columns { // what the server has sent of a run, column by column
  constructor(id) { Object.assign(this, { id, width: 0, cols: 0, windows: 0, grids: {} }); }

  async update() {
    let told = await get(`runs/${this.id}/heat?columns=${COLUMNS}&since=${this.width ? this.windows : 0}`);
    const fits = told.generation === this.generation && told.width === this.width && told.contexts === this.contexts && told.first === this.first && told.column <= this.cols && told.windows >= this.windows;
    if (!fits && told.column) told = await get(`runs/${this.id}/heat?columns=${COLUMNS}`);
    const arrays = await unpack(told), cols = told.column + told.columns;
    for (const name of GRIDS) {
      if (!arrays[name]) { delete this.grids[name]; continue; }
      const kept = told.column && this.grids[name] ? this.grids[name].subarray(0, told.column * told.contexts) : [];
      const Wider = kept.BYTES_PER_ELEMENT > arrays[name].BYTES_PER_ELEMENT ? kept.constructor : arrays[name].constructor;
      const whole = new Wider(cols * told.contexts);
      whole.set(kept);
      whole.set(arrays[name], told.column * told.contexts);
      this.grids[name] = whole;
    }
    this.far = means(this.grids, cols, told.contexts);
    const { generation, windows, first, contexts, levels, width, groups, words = [] } = told, { group, now, moved, status } = arrays;
    Object.assign(this, { generation, windows, first, contexts, levels, width, groups, words, cols, group, now, moved, status });
  }

  end(column) { return Math.min(this.first + (column + 1) * this.width, this.windows); } // windows closed after a column

  retreats(context) { // windows at whose end the frontier stood at an easier level than a column before
    const { frontier } = this.grids, windows = [];
    for (let c = 1; c < this.cols; c++) if (frontier[c * this.contexts + context] > frontier[(c - 1) * this.contexts + context]) windows.push(c * this.width);
    return windows;
  }
}

function means({ frontier, mean }, cols, contexts) { // how far a context has come: its mean level over the columns
  const grid = frontier || mean, total = new Float64Array(contexts), number = new Uint32Array(contexts);
  for (let c = 0; c < cols; c++) for (let x = 0; x < contexts; x++) {
    const v = grid[c * contexts + x];
    if (v !== NONE) { total[x] += v; number[x]++; }
  }
  return total.map((sum, x) => number[x] ? sum / number[x] : 1e3);
}

export class HeatCard {
  constructor(route, id) {
    Object.assign(this, { route, id, columns: new Columns(id), stuck: new Map(), page: 0 });
    const select = (label, name, options) => {
      const made = element("select", { "aria-label": label }, ...Object.entries(options).map(([value, words]) => new Option(words, value)));
      if (route.options.get(name) in options) made.value = route.options.get(name);
      made.addEventListener("change", () => { route.keep(name, made.value); this.page = 0; this.draw(); });
      return made;
    };
    this.order = select("order of contexts", "sort", ORDERS);
    this.view = select("what the map shows", "view", { frontier: "frontiers", mean: "where rollouts start" });
    this.only = select("which contexts", "only", { all: "all contexts" });
    this.rows = select("rows at a time", "rows", { all: "all rows", page: `${PAGE} rows at a time` });
    this.before = element("button", { type: "button", textContent: "‹", "aria-label": "rows before these" });
    this.after = element("button", { type: "button", textContent: "›", "aria-label": "rows after these" });
    this.before.addEventListener("click", () => { this.page--; this.draw(); });
    this.after.addEventListener("click", () => { this.page++; this.draw(); });
    this.find = element("input", { type: "number", min: "0", placeholder: "To context", "aria-label": "go to the context with this number" });
    this.find.addEventListener("keydown", (event) => { if (event.key === "Enter" && this.find.value !== "" && this.find.validity.valid) location.hash = `#/run/${id}/context/${Number(this.find.value)}`; });
    this.canvas = element("canvas", { tabIndex: 0, role: "img" });
    this.tip = element("div", { className: "tip", hidden: true, role: "status" });
    this.bands = element("div", { className: "bands", "aria-hidden": "true" });
    this.axis = element("div", { className: "axis", "aria-hidden": "true" });
    this.legend = element("div", { className: "legend" });
    this.about = element("p", { className: "soft" });
    this.empty = element("p", { className: "empty", hidden: true });
    this.box = element("div", {}, element("div", { className: "picker" }, this.order, this.view, this.only, this.rows, this.before, this.after, this.find), element("div", { className: "map" }, this.canvas, this.bands, this.tip), this.axis, this.legend, this.about);
    this.element = card("Where every context stands", this.empty, this.box);
  }

  async update(level, stuck) {
    await this.columns.update();
    this.levels = level;
    this.stuck = new Map(stuck.contexts.map((each) => [each.context, each]));
    if (!this.map) this.map = new HeatMap(this.canvas, this.tip, level, (window, row) => this.words(window, row), (_, row) => { location.hash = `#/run/${this.id}/context/${this.map.rows[row]}`; });
    const { contexts, groups = [], grids } = this.columns;
    this.find.max = String(contexts - 1);
    this.view.hidden = !(grids.frontier && grids.mean);
    this.choices({ all: "all contexts", ...Object.fromEntries(groups.length > 1 && this.columns.group ? groups.map((name, i) => [`group ${i}`, `only ${name}`]) : []), stuck: "only stuck ones", behind: "only those with help" });
    this.draw();
  }

  choices(options) {
    const now = [...this.only.options].map((option) => option.value).join();
    if (now === Object.keys(options).join()) return;
    const chosen = this.route.options.get("only") || this.only.value;
    this.only.replaceChildren(...Object.entries(options).map(([value, words]) => new Option(words, value)));
    this.only.value = chosen in options ? chosen : "all";
  }

  inOrder() {
    const { contexts, group, now, moved, far } = this.columns, level = (x) => now[x] === NONE ? 1e3 : now[x], of = (x) => group ? group[x] : 0;
    const keys = {
      group: (p, q) => of(p) - of(q) || far[p] - far[q] || p - q,
      frontier: (p, q) => level(p) - level(q) || far[p] - far[q] || p - q,
      behind: (p, q) => level(q) - level(p) || far[q] - far[p] || p - q,
      move: (p, q) => moved[q] - moved[p] || p - q,
      bank: (p, q) => p - q,
    };
    const only = this.only.value;
    const kept = [...Array(contexts).keys()].filter((x) => only === "all" || (only === "stuck" ? this.stuck.has(x) : only === "behind" ? now[x] !== 0 : of(x) === Number(only.slice(6))));
    return kept.sort(keys[this.order.value]);
  }

  draw() {
    if (!this.map || !this.columns.cols) {
      this.box.hidden = true;
      this.empty.hidden = false;
      text(this.empty, "No window is closed yet: the map begins with the first one.");
      return;
    }
    this.box.hidden = false;
    const { columns } = this, { contexts, windows, first, width, levels, group, groups, grids } = columns;
    const name = grids[this.view.value] && !this.view.hidden ? this.view.value : grids.frontier ? "frontier" : "mean";
    const all = this.inOrder(), paged = this.rows.value === "page" && all.length > PAGE, pages = Math.ceil(all.length / PAGE);
    this.page = clamp(this.page, 0, Math.max(0, pages - 1));
    const rows = paged ? all.slice(this.page * PAGE, (this.page + 1) * PAGE) : all;
    this.rows.hidden = all.length <= PAGE;
    this.before.hidden = this.after.hidden = !paged;
    this.before.disabled = this.page === 0;
    this.after.disabled = this.page >= pages - 1;
    this.empty.hidden = Boolean(rows.length);
    this.canvas.parentElement.hidden = this.axis.hidden = !rows.length;
    text(this.empty, rows.length ? "" : "No context is like that now.");
    if (rows.length) this.map.draw({
      contexts, windows: windows - first, cols: columns.cols, width, grid: grids[name], levels, group: this.order.value === "group" ? group : null,
      scale: name === "frontier" ? 1 : (levels - 1) / UNIT, mark: 1, retreats: name === "frontier" && rows.length <= 2000 ? (x) => columns.retreats(x) : null,
    }, rows, clamp(rows.length * 4, 160, 440));
    this.nameGroups(rows);
    this.axis.replaceChildren(...windowAxis(first, windows).map(([, words]) => element("span", { textContent: words })));
    this.levels.legend(this.legend, levels, ...(name === "frontier" ? [[RETREAT, "retreat"]] : []));
    const order = this.order.value === "group" && group && groups.length > 1 ? ` Groups from top to bottom, parted by a line: ${groups.join(", ")}.` : "";
    text(this.about, `${paged ? `Rows ${count(this.page * PAGE + 1)} to ${count(this.page * PAGE + rows.length)} of ${count(all.length)}` : plural(rows.length, "context")} from top to bottom, ${plural(windows - first, "window")} from left to right. Colour: ${name === "frontier" ? "frontier" : "mean level of rollouts, blank where a context was not drawn"}.${order} Hover or use the arrow keys; click or press Enter for the context.`);
    this.canvas.setAttribute("aria-label", `${name === "frontier" ? "frontier" : "mean level of the rollouts"} of ${plural(rows.length, "context")} in ${plural(windows - first, "window")}`);
    this.canvas.dataset.windows = windows;
  }

  nameGroups(rows) { // each group's name on its part of the map
    const { group, groups } = this.columns, shown = group && groups.length > 1 && this.order.value === "group";
    const starts = shown ? rows.map((x, row) => [group[x], row]).filter(([g], row) => !row || g !== group[rows[row - 1]]) : [];
    this.bands.replaceChildren(...starts.map(([g, row], k) => {
      const label = element("span", { textContent: groups[g] }), end = k + 1 < starts.length ? starts[k + 1][1] : rows.length;
      label.style.top = `${(row / rows.length) * this.map.height + 3}px`;
      label.hidden = ((end - row) / rows.length) * this.map.height < 24;
      return label;
    }));
  }

  words(window, row) { // what is known of one context in one column
    const { columns, map } = this, { grids, contexts, group, groups, moved, cols, levels } = columns, x = map.rows[row];
    const c = Math.min(cols - 1, Math.floor(window / columns.width)), at = c * contexts + x;
    const lines = [`context ${x}${group && groups.length > 1 ? `, ${groups[group[x]]}` : ""}, ${lasting(columns.first + c * columns.width, columns.end(c))}`];
    if (grids.frontier) lines.push(`frontier at level ${grids.frontier[at]}${grids.frontier[at] === 0 ? " (target start)" : grids.frontier[at] === levels - 1 ? " (easiest start)" : ""}`);
    lines.push(grids.tried[at] ? `${grids.won[at]} of ${plural(grids.tried[at], "rollout")} succeeded, from level ${((grids.mean[at] * (levels - 1)) / UNIT).toFixed(1).replace(/\.0$/, "")}${grids.tried[at] > 1 ? " on average" : ""}` : "not drawn here");
    if (moved[x] && grids.frontier) lines.push(`last move in window ${count(moved[x])}`);
    return [...lines, ...this.status(x)];
  }

  status(x) { // now, in words
    const { status, words } = this.columns, stuck = this.stuck.get(x);
    if (stuck) return [`now stuck: ${stuck.reason}${stuck.waits ? `; ${stuck.waits}` : ""}`];
    if (status && words[status[x]]) return [`now ${words[status[x]].join(": ")}`];
    return [];
  }
}
