// One run: its map, its curves, its events, what is stuck and where the time goes.
import { LINES, Levels, element } from "./draw.js";
import { HeatCard } from "./heat.js";
import { Bar, ChartBox, LongList, SUCCESS, card, link, reconcile, state, text, tile, windowAxis } from "./parts.js";
import { get, rows } from "./server.js";
import { about, closed, count, duration, left, percent, plural, rate } from "./words.js";

export const lineStyle = (i) => ({ colour: LINES[i % LINES.length], dash: ["", "7 4", "2 3"][Math.floor(i / LINES.length) % 3] });

export class RunView {
  title = "scout watch";

  constructor(route, id) {
    Object.assign(this, { id, stamp: null, eventsShown: 12, rest: 0 });
    this.heading = element("h1", { tabIndex: -1 });
    this.what = element("p", { className: "soft" });
    this.state = element("span");
    this.bar = new Bar();
    this.done = element("span", { className: "soft" });
    this.trouble = element("p", { className: "trouble", hidden: true });
    this.alerts = element("ul", { className: "alerts" });
    this.alertCard = card("Alerts", this.alerts);
    this.tiles = { worst: tile("worst group, held out"), target: tile("contexts at the target start"), stuck: tile("stuck contexts"), teach: tile("rollouts that teach nothing") };
    this.heat = new HeatCard(route, id);
    this.charts = { held: new ChartBox("Held-out success by group"), both: new ChartBox("Training beside held-out"), levels: new ChartBox("Where rollouts start"), teach: new ChartBox("Cells that teach nothing") };
    const learning = card("How it learns", element("div", { className: "multiples" }, ...Object.values(this.charts).map((chart) => chart.element)));
    this.noStuck = element("p", { className: "empty" });
    this.stuck = element("div", { className: "reasons" });
    this.stuckCard = card("Stuck contexts", this.noStuck, this.stuck);
    this.events = element("ol", { className: "events" });
    this.noEvent = element("p", { className: "empty", textContent: "No frontier has moved and nothing was evaluated yet.", hidden: true });
    this.eventCard = card("Events", this.noEvent, this.events);
    this.eventList = new LongList(this.events, {
      key: (event) => `${event.window} ${event.kind} ${event.context} ${event.to_level}`, make: (event) => makeEvent(event, this.id), step: 12, what: "events",
      more: async (shown) => { this.eventsShown = shown; await this.readEvents(); },
    });
    this.pair = element("div", { className: "pair single" }, this.stuckCard, this.eventCard);
    this.timeTiles = { window: tile("per window"), rollouts: tile("rollouts per second"), steps: tile("steps per second"), total: tile("so far") };
    this.timeParts = element("div", { className: "parts", "aria-hidden": "true" });
    this.timeKey = element("div", { className: "legend parts-key" });
    this.timeNote = element("p", { className: "soft" });
    this.timeChart = new ChartBox("Seconds per window", 120);
    this.timeCard = card("Where the time goes", element("div", { className: "tiles" }, ...Object.values(this.timeTiles).map((each) => each.box)), this.timeParts, this.timeKey, this.timeNote, this.timeChart.element);
    this.config = element("pre", { tabIndex: 0 });
    this.element = element("div", {},
      element("nav", { "aria-label": "breadcrumb", className: "crumbs" }, link("#/", "All runs")), this.heading, this.what,
      element("div", { className: "status" }, this.state, this.bar.element, this.done), this.trouble, this.alertCard,
      element("div", { className: "tiles lead" }, ...Object.values(this.tiles).map((each) => each.box)),
      this.heat.element, learning, this.pair, this.timeCard,
      element("section", {}, element("details", {}, element("summary", { textContent: "Folder, config and versions of this run" }), this.config)));
  }

  concerns(changed) { return changed.includes(this.id); }

  async update() {
    if (this.meta && !rows.has(this.id)) return this.gone();
    if (!this.meta) {
      this.meta = await get(`runs/${this.id}`);
      rows.set(this.id, this.meta.row);
      this.level = new Levels(this.meta.level);
      text(this.config, JSON.stringify({ folder: this.meta.row.folder, config: this.meta.config, versions: this.meta.versions, ran_on: this.meta.ran_on }, null, 1));
    }
    const now = rows.get(this.id);
    this.showRow(now);
    if (now.stamp === this.stamp) return;
    const begun = performance.now();
    if (begun < this.rest) return this.later(this.rest - begun);
    const base = `runs/${this.id}`;
    const [stuck, curves, shares, time] = await Promise.all([get(`${base}/stuck?limit=1000`), get(`${base}/curves`), get(`${base}/shares`), get(`${base}/time`), this.readEvents()]);
    await this.heat.update(this.level, stuck);
    this.showCurves(curves, now);
    this.showShares(shares);
    this.showStuck(stuck);
    this.showTime(time, now.state);
    this.showTiles(now, stuck, shares);
    this.stamp = shares.teaching.complete ? now.stamp : null; // the server replays a long run in portions
    this.rest = performance.now() + (shares.teaching.complete ? 3 : 0.5) * (performance.now() - begun); // a large bank is asked for less often
    if (!this.stamp) this.later(this.rest - performance.now());
  }

  later(milliseconds) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.element.isConnected && this.again(), milliseconds);
  }

  gone() {
    this.trouble.hidden = false;
    text(this.trouble, "This run is no longer in the folders that are watched. What you see was read before.");
  }

  showRow(row) {
    this.title = `${row.name} · scout watch`;
    text(this.heading, row.name);
    text(this.what, `${about(row)}; ${plural(row.contexts, "context")}, ${plural(row.levels, "level")}.`);
    this.state.replaceChildren(state(row.state));
    this.bar.set(row.budget ? row.windows / row.budget : null);
    const pace = row.seconds_per_window ? `${duration(row.seconds_per_window)} per window` : "";
    text(this.done, [closed(row), row.state === "training" && row.budget ? `${left(row)}${row.seconds_left === null ? "" : " left"}` : "", pace].filter(Boolean).join(" · "));
    this.trouble.hidden = !row.trouble;
    text(this.trouble, row.trouble);
    this.alertCard.hidden = !row.alerts.length;
    reconcile(this.alerts, row.alerts, (alert) => alert.text, (alert) => element("li", {}, element("b", { textContent: alert.kind }), element("span", { textContent: alert.text }), ...contextLinks(this.id, alert.contexts)));
  }

  showTiles(row, stuck, shares) {
    const { now } = this.heat.columns, at = now ? now.reduce((n, level) => n + (level === 0), 0) : 0;
    this.tiles.worst.set(row.worst ? percent(row.worst.success) : "–", row.worst ? `${row.worst.group}, after ${plural(row.evaluated_at, "window")}` : "not evaluated yet");
    this.tiles.target.set(`${count(at)}`, `of ${count(row.contexts)}`);
    this.tiles.stuck.set(count(stuck.total), stuck.total ? Object.entries(stuck.by_reason).sort(([, p], [, q]) => q - p).map(([reason, n]) => `${count(n)} ${reason}`).slice(0, 2).join(", ") : "none");
    const wasted = shares.teaching.rollouts.at(-1);
    this.tiles.teach.set(percent(wasted), wasted === undefined || wasted === null ? "not known yet" : "lately: too hard or mastered");
  }

  showCurves({ held_out: held, worst_group: worst, training, windows, first }, row) {
    const names = Object.keys(held.groups), axis = { x: [first, Math.max(windows, first + 1)], axis: windowAxis(first, windows) };
    const value = (series, at) => (x) => { const i = at.indexOf(x); return i < 0 ? null : series[i]; };
    const last = names.map((name) => held.groups[name].at(-1)), alike = last.every((v) => v === last[0]), front = (name) => name === worst && !alike || names.length === 1;
    const lines = names.map((name, i) => ({ name, x: held.at, y: held.groups[name], ...lineStyle(i), weight: front(name) ? 2.8 : alike ? 2 : 1.5, quiet: !front(name) && !alike, label: `${name} ${percent(held.groups[name].at(-1))}` }));
    const none = row.kind === "log_dir" ? "No held-out evaluation yet: curriculum.evaluation(outcomes, groups) records one." : "No held-out evaluation yet.";
    this.charts.held.draw(held.at.length ? { ...SUCCESS, ...axis, lines, words: (x) => [`after ${plural(x, "window")}`, ...names.map((name) => `${name} ${percent(value(held.groups[name], held.at)(x))}`)] } : null,
      held.at.length ? `${names.length > 1 ? alike ? "All groups alike now. " : `Worst now: ${worst}. ` : ""}Target start, contexts that are not trained on.` : none,
      held.at.length ? lines.map((line) => line.label).join(", ") : "");
    const both = [
      { name: "held out", x: held.at, y: held.all, colour: "var(--ink)", weight: 2.8 },
      { name: "training", x: training.at, y: training.all, colour: LINES[0], weight: 1.6 },
      { name: "training, level 0", x: training.at, y: training.target, colour: LINES[1], dash: "7 4", weight: 1.6 },
    ].filter((line) => line.y.some((v) => v !== null)).map((line) => ({ ...line, label: line.name }));
    this.charts.both.draw(both.length ? { ...SUCCESS, ...axis, lines: both, words: (x) => [`after ${plural(x, "window")}`, ...both.flatMap((line) => { const v = value(line.y, line.x)(x); return v === null || v === undefined ? [] : [`${line.name} ${percent(v)}`]; })] } : null,
      both.length ? "Training counts every start, with help or without; level 0 is the target start." : "No window is closed yet.", both.map((line) => `${line.name} ${percent(line.y.filter((v) => v !== null).at(-1))}`).join(", "));
  }

  showShares({ at, levels, teaching }) {
    const { first, windows, levels: n } = this.heat.columns;
    const known = at.map((x, i) => [x, levels[i]]).filter(([, shares]) => shares), xs = known.map(([x]) => x), last = known.length ? known.at(-1)[1] : [];
    const axis = { x: [first, Math.max(windows, first + 1)], axis: windowAxis(first, windows) };
    const sums = known.map(([, shares]) => shares.reduce((all, share) => [...all, all.at(-1) + share], [0]));
    const areas = [...Array(n).keys()].map((level) => ({ x: xs, low: sums.map((sum) => sum[level]), high: sums.map((sum) => sum[level + 1]), colour: this.level.css(level, n), label: last[level] >= 0.04 ? `level ${level}` : null, inside: last[level] >= 0.04 ? null : `level ${level}` }));
    this.charts.levels.draw(known.length ? { ...SUCCESS, ...axis, areas, words: (x) => { const i = xs.indexOf(x); return [`up to ${plural(x, "window")}`, ...known[i][1].map((share, level) => `level ${level}: ${percent(share)}`)]; } } : null,
      known.length ? "Share of the rollouts from each level. Dark is the target start." : "No window is closed yet.", last.map((share, level) => `level ${level} ${percent(share)}`).join(", "));
    const t = teaching, length = t.at.length, end = (name) => t[name].at(-1);
    const one = t.at.map(() => 1), zero = t.at.map(() => 0), hard = t.too_hard, unknown = t.too_hard.map((v, i) => v + t.unknown[i]), easy = t.mastered.map((v) => 1 - v);
    const taught = t.at.map((_, i) => easy[i] - unknown[i]);
    const named = (words, v) => v >= 0.06 ? { label: `${words} ${percent(v)}` } : { inside: words };
    this.charts.teach.draw(length ? { ...SUCCESS, ...axis, areas: [
      { x: t.at, low: zero, high: hard, colour: "var(--hard)", ...named("too hard", end("too_hard")) },
      { x: t.at, low: hard, high: unknown, colour: "var(--unknown)", ...named("not known yet", end("unknown")) },
      { x: t.at, low: unknown, high: easy, colour: "var(--teaching)", ...named("teaching", taught.at(-1)) },
      { x: t.at, low: easy, high: one, colour: "var(--mastered)", ...named("mastered", end("mastered")) },
    ], lines: [{ name: "rollouts from such cells", x: t.at, y: t.rollouts, colour: "var(--ink)", weight: 1.8, dash: "2 3" }],
    words: (x) => { const i = t.at.indexOf(x); return [`after ${plural(x, "window")}`, `too hard ${percent(t.too_hard[i])}`, `not known yet ${percent(t.unknown[i])}`, `teaching ${percent(taught[i])}`, `mastered ${percent(t.mastered[i])}`, `rollouts that teach nothing ${percent(t.rollouts[i])}`]; } } : null,
      length ? `Too hard: chance up to ${percent(t.near)}; mastered: from ${percent(1 - t.near)} (${t.source}). Dotted: rollouts from such cells.${t.complete ? "" : ` Replayed so far: ${percent(t.progress)}.`}` : t.complete ? "Nothing is known of any cell yet." : `The records are being replayed: ${percent(t.progress)}.`,
      length ? `too hard ${percent(end("too_hard"))}, mastered ${percent(end("mastered"))}, rollouts that teach nothing ${percent(end("rollouts"))}` : "");
  }

  showStuck(stuck) { // reason by reason, the most frequent first
    this.noStuck.hidden = Boolean(stuck.total);
    if (stuck.total) this.pair.classList.remove("single"); // and it stays: no jumping back and forth
    text(this.noStuck, stuck.windows ? "No context is stuck." : "No window is closed yet.");
    const reasons = Object.entries(stuck.by_reason).sort(([, p], [, q]) => q - p);
    reconcile(this.stuck, reasons, ([reason]) => reason, ([reason]) => {
      const head = element("h3"), meaning = element("p", { className: "soft" }), list = element("ul", { className: "stuck" }), made = element("div", {}, head, meaning, list);
      const contexts = new LongList(list, { key: (each) => each.context, make: (each) => this.makeStuck(each), update: (item, each) => item.show(each), step: 5, what: "contexts" });
      made.show = (n, entries) => { text(head, `${reason[0].toUpperCase()}${reason.slice(1)}: ${plural(n, "context")}`); text(meaning, entries.length ? `${entries[0].meaning[0].toUpperCase()}${entries[0].meaning.slice(1)}.` : ""); contexts.set(entries); };
      return made;
    }, (made, [reason, n]) => made.show(n, stuck.contexts.filter((each) => each.reason === reason)));
  }

  makeStuck(each) {
    const where = element("span", { className: "soft" }), evidence = element("span"), waits = element("span", { className: "waits" });
    const made = element("li", {}, link(`#/run/${this.id}/context/${each.context}`, `context ${each.context}`), where, evidence, waits);
    made.show = (now) => { text(where, [now.group, now.level === null ? "" : `level ${now.level}`].filter(Boolean).join(", ")); text(evidence, now.evidence); text(waits, now.waits); };
    return made;
  }

  async readEvents() {
    const told = await get(`runs/${this.id}/events?limit=${Math.min(this.eventsShown + 20, 2000)}`);
    this.noEvent.hidden = Boolean(told.total);
    this.eventList.set(told.events, told.total);
  }

  showTime(time, state) {
    const { first, windows } = this.heat.columns;
    const t = this.timeTiles;
    t.window.set(time.seconds_per_window === null ? "–" : duration(time.seconds_per_window), time.seconds_left === null || state !== "training" ? "" : `${duration(time.seconds_left)} left`);
    t.rollouts.set(rate(time.rollouts_per_second));
    t.steps.set(rate(time.steps_per_second));
    t.total.set(time.seconds === null ? "–" : duration(time.seconds), time.source && `by ${time.source}`);
    this.timeParts.hidden = this.timeKey.hidden = !time.parts.length;
    reconcile(this.timeParts, time.parts, (part) => part.name, () => element("i"), (made, part) => { made.style.flexGrow = String(Math.max(0.001, part.share)); });
    reconcile(this.timeKey, time.parts, (part) => part.name, () => element("span", {}, element("i"), element("span")), (made, part) => text(made.lastChild, `${part.name} ${percent(part.share)}, ${duration(part.seconds)}`));
    text(this.timeNote, time.note || "");
    this.timeNote.hidden = !time.note;
    const known = time.per_window.filter((v) => v !== null).sort((p, q) => p - q), longest = known.at(-1) || 0, usual = known[Math.floor(known.length * 0.9)] || 0;
    const top = longest > 3 * usual && usual ? 2 * usual : longest, cut = top < longest ? `The longest took ${duration(longest)}: it is cut off here.` : "";
    this.timeChart.draw(known.length > 1 ? { x: [first, windows], y: [0, top * 1.05 || 1], ticks: [[0, "0"], [top, duration(top)]], margin: { left: 52, top: 12, bottom: 24 }, axis: windowAxis(first, windows), lines: [{ x: time.at, y: time.per_window, colour: LINES[0], weight: 1.6 }], words: (x) => [`up to ${plural(x, "window")}`, `${duration(time.per_window[time.at.indexOf(x)])} per window`] } : null,
      known.length > 1 ? cut : state === "training" || state === "starting" ? "Times show up after a few windows." : "These records hold no time per window.", `between ${duration(known[0])} and ${duration(longest)}`);
  }

  redraw() {
    this.heat.draw();
    for (const chart of [...Object.values(this.charts), this.timeChart]) chart.redraw();
  }
}

export function contextLinks(id, contexts, most = 12) {
  return contexts.length ? [element("span", { className: "contexts" }, ...contexts.slice(0, most).map((x) => link(`#/run/${id}/context/${x}`, String(x))), contexts.length > most ? ` and ${contexts.length - most} more` : "")] : [];
}

export function makeEvent(event, id) { // the context's name in the text is the link to it
  const name = event.context === undefined ? "" : `Context ${event.context}`, linked = id && name && event.text.startsWith(name);
  const words = element("span", {}, ...(linked ? [link(`#/run/${id}/context/${event.context}`, name), event.text.slice(name.length)] : [event.text]));
  return element("li", { className: event.kind }, element("span", { className: "when", textContent: count(event.kind === "evaluation" ? event.window : event.window + 1) }), words);
}
