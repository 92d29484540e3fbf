// One context of a run: where it stands and why, its chance at every level, its outcomes, the pictures of its rungs.
import { Levels, element, filled, shape } from "./draw.js";
import { ChartBox, LongList, card, cells, link, reconcile, table, text, windowAxis } from "./parts.js";
import { makeEvent } from "./run.js";
import { get, rows } from "./server.js";
import { count, percent, plural } from "./words.js";

export class ContextView {
  title = "scout watch";

  constructor(route, id, context) {
    Object.assign(this, { id, context, stamp: null });
    this.up = link(`#/run/${id}`, "The run");
    this.before = link(`#/run/${id}/context/${context - 1}`, `‹ ${context - 1}`);
    this.after = link(`#/run/${id}/context/${context + 1}`, `${context + 1} ›`);
    this.before.setAttribute("aria-label", `context ${context - 1}`);
    this.after.setAttribute("aria-label", `context ${context + 1}`);
    this.before.hidden = context < 1;
    this.what = element("p", { className: "soft" });
    this.say = element("div", { className: "say" });
    this.chances = table(["level", "chance", "", "outcomes", "last ten"], "chances");
    this.source = element("p", { className: "soft" });
    this.outcomes = new ChartBox("Every rollout, by level");
    this.pictures = element("div", { className: "pictures" });
    this.pictureCard = card("Its rungs", this.pictures);
    this.pictureCard.hidden = true;
    this.events = element("ol", { className: "events" });
    this.noEvent = element("p", { className: "empty", textContent: "Its frontier has not moved yet." });
    this.element = element("div", {}, element("nav", { "aria-label": "breadcrumb", className: "crumbs" }, link("#/", "All runs"), this.up, this.before, this.after),
      element("h1", { textContent: `Context ${context}`, tabIndex: -1 }), this.what, this.say,
      element("div", { className: "pair" }, card("Chance of success per level", this.source, this.chances.box), card("Outcomes", this.outcomes.element)),
      this.pictureCard, card("Its moves", this.noEvent, this.events));
    this.list = new LongList(this.events, { key: (event) => `${event.window} ${event.kind}`, make: (event) => makeEvent(event), step: 20, what: "moves" });
  }

  concerns(changed) { return changed.includes(this.id); }

  async update() {
    if (this.stamp && rows.get(this.id)?.stamp === this.stamp) return;
    if (!this.meta) {
      this.meta = await get(`runs/${this.id}`);
      rows.set(this.id, this.meta.row);
    }
    const now = rows.get(this.id) || this.meta.row, told = await get(`runs/${this.id}/contexts/${this.context}`);
    this.level = new Levels(this.meta.level);
    this.title = `Context ${this.context} of ${now.name} · scout watch`;
    text(this.up, now.name);
    this.after.hidden = this.context + 1 >= now.contexts;
    text(this.what, `${told.group ? `Group ${told.group}. ` : ""}${told.level === null ? "Not drawn yet." : `${now.has_frontier ? "Frontier" : "Last rollout"} at level ${this.level.name(told.level, now.levels).replace("level ", "")}.`} ${plural(told.outcomes.total, "rollout")} so far.`);
    const lines = [told.reason ? `${told.reason}: ${told.meaning}.` : "", told.stuck ? `Stuck, ${told.stuck.reason}: ${told.stuck.meaning} (${told.stuck.evidence}).` : "", told.waits ? `It ${told.waits}.` : ""].filter(Boolean);
    this.say.hidden = !lines.length;
    reconcile(this.say, lines.map((line) => line[0].toUpperCase() + line.slice(1)), (line) => line, (line) => element("p", { textContent: line }));
    this.showChances(told, now);
    this.showOutcomes(told, now);
    this.showPictures(told);
    this.noEvent.hidden = Boolean(told.events.length);
    this.list.set(told.events);
    this.stamp = told.chance_complete ? now.stamp : null;
    if (!told.chance_complete) setTimeout(() => this.element.isConnected && this.again(), 400);
  }

  showChances(told, row) {
    text(this.source, told.chance_source ? `By ${told.chance_source}${told.chance_complete ? "" : "; the records are still being replayed"}.${told.by_level.some((each) => each.low !== null) ? " The bar is one standard error." : ""}` : "No chance is known.");
    reconcile(this.chances.body, told.by_level, (each) => each.level, (each) => {
      const swatch = element("i", { className: "swatch" }), picture = element("span"), chance = element("b"), tried = element("span"), recent = element("span");
      swatch.style.background = this.level.css(each.level, row.levels);
      const made = element("tr", { role: "row" }, ...cells([swatch, String(each.level), element("span", { className: "long", textContent: this.level.name(each.level, row.levels).replace(/^level \d+| \(.*/g, "") })], [chance], [picture], [tried], [recent]));
      made.show = (now) => {
        text(chance, percent(now.chance));
        picture.replaceChildren(...(now.chance === null ? [] : [whisker(now, this.level.css(now.level, row.levels))]));
        text(tried, now.tried ? `${count(now.won)} of ${count(now.tried)}` : "none");
        text(recent, percent(now.recent));
      };
      return made;
    }, (made, each) => made.show(each));
  }

  showOutcomes(told, row) {
    const { window, level, success, total } = told.outcomes, top = row.levels - 1, cut = total > window.length;
    const from = cut ? window[0] : row.first, at = (k) => window[k] + 1, height = 40 + row.levels * 30;
    this.outcomes.height = height;
    const step = told.frontier.length ? [{ x: told.at, y: told.frontier, colour: "var(--ink)", weight: 1.2, quiet: true, step: true }] : [];
    const inside = (x) => x >= from;
    const lines = step.map((line) => ({ ...line, x: line.x.filter(inside), y: line.y.filter((_, i) => inside(line.x[i])) }));
    const points = { x: window.map((_, k) => at(k)), y: window.map(() => null), colour: "none" };
    const spec = { x: [from, Math.max(row.windows, from + 1)], y: [-0.5, top + 0.5], ticks: [...Array(row.levels).keys()].map((each) => [each, String(each)]), margin: { left: 22, top: 8, bottom: 24 }, axis: windowAxis(from, row.windows), lines: [...lines, points],
      marks: (chart) => marks(chart, told.outcomes),
      words: (x) => {
        const here = [...window.keys()].filter((k) => at(k) === x), f = told.at.indexOf(x);
        return [`window ${count(x)}`, ...here.map((k) => `level ${level[k]}: ${success[k] ? "succeeded" : "failed"}`), ...(f >= 0 && told.frontier.length ? [`frontier at level ${told.frontier[f]}`] : [])];
      } };
    this.outcomes.draw(window.length ? spec : null, window.length ? `${cut ? `The last ${count(window.length)} of ${count(total)}. ` : ""}A tall blue mark succeeded, a short grey one failed. The line is the frontier.` : "No rollout of this context yet.");
  }

  showPictures(told) {
    this.pictureCard.hidden = !told.pictures.length;
    reconcile(this.pictures, told.pictures, (name) => name, (name) => element("img", { src: `api/runs/${this.id}/pictures/${name.split("/").map(encodeURIComponent).join("/")}`, alt: `starts of context ${this.context}, level by level: ${name}`, loading: "lazy" }));
  }

  redraw() { this.outcomes.redraw(); }
}

function whisker({ chance, low, high }, colour) { // chance on a line from 0 to 1
  const svg = shape("svg", { class: "dots", viewBox: "0 0 100 14", preserveAspectRatio: "none", "aria-hidden": "true" }), at = (v) => 3 + 94 * v;
  svg.append(shape("line", { x1: 3, x2: 97, y1: 7, y2: 7, class: "rule" }));
  if (low !== null && high !== null) svg.append(shape("rect", { x: at(low), width: Math.max(0.5, at(high) - at(low)), y: 4.5, height: 5, class: "error" }));
  const dot = filled(colour, "ellipse", { cx: at(chance), cy: 7, rx: 2.4, ry: 5, class: "ringed" });
  svg.append(dot);
  return svg;
}

function marks(chart, { window, level, success }) { // two shapes, however many outcomes
  const paths = new Map();
  window.forEach((w, k) => {
    const x = chart.at(w + 1).toFixed(1), y = chart.up(level[k]), half = success[k] ? 9 : 4;
    paths.set(success[k], `${paths.get(success[k]) || ""}M${x} ${y - half}v${2 * half}`);
  });
  return [...paths].sort(([p], [q]) => p - q).map(([won, d]) => shape("path", { d, class: won ? "won" : "lost", fill: "none" }));
}
