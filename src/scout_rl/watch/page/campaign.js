// A campaign: a row per setting and rule, a column per seed, and what failed.
import { element } from "./draw.js";
import { Bar, card, cells, link, reconcile, state, table, text } from "./parts.js";
import { get } from "./server.js";
import { percent, plural } from "./words.js";

export class Campaign {
  title = "Campaign · scout watch";

  constructor(route, id) {
    this.id = id;
    this.heading = element("h1", { tabIndex: -1 });
    this.what = element("p", { className: "soft" });
    this.failures = element("ul", { className: "alerts" });
    this.troubles = element("div", { className: "troubles" });
    this.failureCard = card("What went wrong", this.troubles, this.failures);
    this.grid = element("div");
    this.element = element("div", {}, element("nav", { "aria-label": "breadcrumb", className: "crumbs" }, link("#/", "All runs")), this.heading, this.what, this.failureCard, card("Runs by seed", this.grid));
  }

  async update() {
    const told = await get(`campaigns/${this.id}`);
    this.title = `Campaign ${told.name} · scout watch`;
    text(this.heading, `Campaign ${told.name}`);
    text(this.what, `${plural(told.cells.length, "run")}: ${Object.entries(told.counts).map(([word, n]) => `${n} ${word}`).join(", ")}. ${told.folder}`);
    const failed = told.cells.filter((cell) => cell.error);
    this.failureCard.hidden = !failed.length && !told.troubles.length;
    reconcile(this.troubles, told.troubles, (sentence) => sentence, (sentence) => element("p", { className: "trouble", textContent: sentence }));
    reconcile(this.failures, failed, JSON.stringify, (cell) => element("li", {}, element("b", { textContent: cell.state }), cell.id ? link(`#/run/${cell.id}`, named(cell)) : element("span", { textContent: named(cell) }), element("span", { textContent: wrong(cell) })));
    this.showGrid(told);
  }

  showGrid(told) {
    const seeds = told.seeds.join();
    if (this.seeds !== seeds) {
      this.seeds = seeds;
      this.table = table(["setting and rule", ...told.seeds.map((seed) => `seed ${seed}`)], "campaign");
      this.grid.replaceChildren(this.table.box);
    }
    const lines = [...new Set(told.cells.map((cell) => `${cell.setting} ${cell.rule}`))];
    const at = new Map(told.cells.map((cell) => [`${cell.setting} ${cell.rule} ${cell.seed}`, cell]));
    reconcile(this.table.body, lines, (line) => line, (line) => {
      const boxes = told.seeds.map(() => element("div", { className: "cell" }));
      const made = element("tr", { role: "row" }, ...cells(element("span", { textContent: line }), ...boxes));
      made.show = () => told.seeds.forEach((seed, i) => fill(boxes[i], made.planned.get(`${line} ${seed}`)));
      return made;
    }, (made) => { made.planned = at; made.show(); });
  }

  redraw() {}
}

// A run that was damaged has an error, but no failure.
const wrong = ({ times, windows, error }) => times ? `Failed ${times === 1 ? "once" : `${times} times`}, after ${plural(windows, "window")}: ${error}` : error;
const named = (cell) => `${cell.setting} ${cell.rule}, seed ${cell.seed}`;

function fill(box, cell) {
  const stamp = JSON.stringify(cell || null);
  if (box.dataset.stamp === stamp) return;
  box.dataset.stamp = stamp;
  if (!cell) return box.replaceChildren("–");
  const bar = new Bar(), worst = cell.worst === null ? "" : `worst group ${percent(cell.worst)}`;
  bar.set(cell.budget ? cell.windows / cell.budget : null);
  const head = cell.id ? link(`#/run/${cell.id}`, "") : element("span");
  head.append(state(cell.state));
  box.replaceChildren(head, bar.element, element("span", { className: "soft", textContent: [cell.budget ? `${cell.windows} of ${cell.budget}` : String(cell.windows), worst].filter(Boolean).join(", ") }));
}
