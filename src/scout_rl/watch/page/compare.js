// Several runs overlaid: the worst group's held-out success, all together and seed by seed.
import { element } from "./draw.js";
import { ChartBox, LongList, SUCCESS, card, cells, link, reconcile, table, text, windowAxis } from "./parts.js";
import { lineStyle } from "./run.js";
import { get, rows } from "./server.js";
import { count, percent, plural } from "./words.js";

const two = (value) => value === null || value === undefined ? "–" : value.toFixed(2);
const signed = (value) => `${value > 0 ? "+" : value < 0 ? "−" : ""}${Math.abs(value).toFixed(2)}`;

export class Compare {
  title = "Comparison · scout watch";

  constructor(route, ids) {
    Object.assign(this, { ids, stamps: "" });
    this.what = element("p", { className: "soft" });
    this.names = element("ul", { className: "key" });
    this.together = new ChartBox("Worst group of the held-out contexts", 260);
    this.seeds = element("div", { className: "multiples three" });
    this.seedCard = card("Seed by seed", this.seeds);
    this.charts = new Map();
    this.pairBox = element("div");
    this.pairNote = element("p", { className: "soft" });
    this.differences = element("div", { className: "say" });
    this.sentences = element("div");
    this.differences.append(this.sentences);
    this.list = new LongList(this.sentences, { key: (sentence) => sentence, make: (sentence) => element("p", { textContent: sentence }), step: 6, what: "pairs of rules" });
    this.pairCard = card("In numbers", this.differences, this.pairBox, this.pairNote);
    this.element = element("div", {}, element("nav", { "aria-label": "breadcrumb", className: "crumbs" }, link("#/", "All runs")), element("h1", { textContent: "Comparison", tabIndex: -1 }), this.what,
      card("All runs", this.names, this.together.element), this.seedCard, this.pairCard);
  }

  concerns(changed) { return changed.some((id) => this.ids.includes(id)); }

  async update() {
    const stamps = this.ids.map((id) => rows.get(id)?.stamp).join();
    if (this.stamps && stamps === this.stamps) return;
    const told = await get(`compare?${this.ids.map((id) => `run=${encodeURIComponent(id)}`).join("&")}`);
    const settings = [...new Set(told.runs.map((run) => run.setting || ""))];
    const labels = [...new Set(told.runs.map((run) => run.label))], style = (run) => lineStyle(labels.indexOf(run.label));
    text(this.what, `${plural(told.runs.length, "run")}${settings.length === 1 && settings[0] ? ` on ${settings[0]}` : ""}; a colour per ${settings.length > 1 ? "setting and rule" : "rule"}, a line per run.${told.common ? ` Compared over windows ${count(told.common[0])} to ${count(told.common[1])}, which all of them have.` : " They share no evaluated windows, so no areas are compared."}`);
    reconcile(this.names, told.runs, (run) => run.id, (run) => element("li", {}, element("i"), link(`#/run/${run.id}`, run.name)), (made, run) => { made.firstChild.style.background = style(run).colour; });
    const last = Math.max(1, ...told.runs.flatMap((run) => run.held_out.at)), axis = { x: [0, last], axis: windowAxis(0, last) };
    const line = (run, weight, words) => ({ name: `${run.label}, seed ${run.seed}`, x: run.held_out.at, y: run.held_out.worst, ...style(run), weight, label: words });
    const spec = (runs, weight, labelled) => {
      const lines = runs.filter((run) => run.held_out.at.length).map((run) => line(run, weight, labelled(run)));
      return lines.length ? { ...SUCCESS, ...axis, lines, words: (x) => [`after ${plural(x, "window")}`, ...lines.flatMap((each) => { const i = each.x.indexOf(x); return i < 0 ? [] : [`${each.name}: ${percent(each.y[i])}`]; })] } : null;
    };
    const firstOf = (run) => told.runs.find((other) => other.label === run.label && other.held_out.at.length) === run;
    this.together.draw(spec(told.runs, 1.9, (run) => firstOf(run) && labels.length <= 12 ? run.label : null), told.runs.some((run) => run.held_out.at.length) ? "" : "None of these runs has a held-out evaluation yet.", `${labels.join(", ")}, ${plural(told.runs.length, "run")}`);
    this.showSeeds(told, spec);
    this.showPairs(told);
    this.stamps = stamps;
  }

  showSeeds(told, spec) {
    const seeds = [...new Set(told.runs.map((run) => run.seed))].sort((p, q) => p - q);
    this.seedCard.hidden = seeds.length < 2;
    reconcile(this.seeds, seeds, (seed) => seed, (seed) => {
      const chart = new ChartBox(`Seed ${seed}`, 130);
      this.charts.set(seed, chart);
      return chart.element;
    });
    for (const seed of seeds) {
      const runs = told.runs.filter((run) => run.seed === seed);
      this.charts.get(seed).draw(spec(runs, 2, (run) => run.label), runs.some((run) => run.held_out.at.length) ? "" : "Not evaluated yet.", runs.map((run) => `${run.label} ${percent(run.held_out.worst.at(-1))}`).join(", "));
    }
  }

  showPairs(told) { // a row per seed, a column per rule
    const labels = [...new Set(told.pairs.flatMap((pair) => pair.runs.map((run) => run.label)))];
    if (this.labels !== labels.join("\n")) {
      this.labels = labels.join("\n");
      this.pairs = table(["seed", ...labels], "pairs");
      this.pairBox.replaceChildren(this.pairs.box);
    }
    this.pairBox.hidden = !labels.length;
    reconcile(this.pairs.body, told.pairs, (pair) => pair.seed, (pair) => element("tr", { role: "row" }, ...cells(String(pair.seed), ...labels.map(() => element("div", { className: "cell" })))), (made, pair) => {
      labels.forEach((label, k) => reconcile(made.children[k + 1].firstChild, pair.runs.filter((run) => run.label === label), (run) => run.id, (run) => link(`#/run/${run.id}`, ""), (each, run) => text(each, `${two(run.worst_auc)}, now ${percent(run.final_worst)}`)));
    });
    const sentences = told.differences.map((each) => `${each.a} against ${each.b}, worst-group AUC, median over ${plural(each.seeds.length, "paired seed")}: ${signed(each.median)} (${each.worst_auc.map((value, i) => `seed ${each.seeds[i]}: ${signed(value)}`).join(", ")}).`);
    this.differences.hidden = !sentences.length;
    this.list.set(sentences);
    text(this.pairNote, sentences.length ? "Each cell: worst-group AUC, then the worst group at the last evaluation. AUC is the mean height of the curve over the shared windows. A difference is taken within a seed." : labels.length ? "No seed has runs of two rules, so nothing is paired." : "There is nothing to compare yet.");
  }

  redraw() { for (const chart of [this.together, ...this.charts.values()]) chart.redraw(); }
}
