// Every run in a row, alerts on top. Ticked runs are compared.
import { element } from "./draw.js";
import { Bar, LongList, card, cells, groupDots, link, reconcile, state, table, text } from "./parts.js";
import { about, rows } from "./server.js";
import { about as describe, closed, left, percent, plural } from "./words.js";

const STATES = ["training", "starting", "damaged", "deleted", "stopped", "finished"];
const ORDERS = {
  state: ["training first", (p, q) => STATES.indexOf(p.state) - STATES.indexOf(q.state)],
  success: ["least success first", (p, q) => (p.worst ? p.worst.success : 2) - (q.worst ? q.worst.success : 2)],
  change: ["latest change first", (p, q) => q.updated - p.updated],
  name: ["by name", () => 0],
};
const byName = (p, q) => p.name.localeCompare(q.name, "en", { numeric: true });
const ticked = new Set();

export class Overview {
  title = "scout watch";

  constructor(route) {
    this.route = route;
    this.summary = element("p", { className: "soft" });
    this.troubles = element("div", { className: "troubles" });
    this.alerts = element("ul", { className: "alerts" });
    this.alertCard = card("Alerts", this.alerts);
    this.alertCard.hidden = true;
    this.campaigns = element("nav", { "aria-label": "campaigns", hidden: true });
    this.empty = element("p", { className: "empty", hidden: true });
    this.order = element("select", { "aria-label": "order of runs" }, ...Object.entries(ORDERS).map(([value, [words]]) => new Option(words, value)));
    this.order.value = route.options.get("sort") in ORDERS ? route.options.get("sort") : "state";
    this.find = element("input", { type: "search", placeholder: "Find a run", "aria-label": "find a run", value: route.options.get("find") || "" });
    this.table = table(["", "run", "progress", "time left", "worst group", "last event"], "runs");
    this.compare = element("a", { className: "action" });
    this.clear = element("button", { type: "button", textContent: "Clear" });
    this.chosen = element("div", { className: "chosen", hidden: true, role: "status" }, this.compare, this.clear);
    this.list = element("section", { "aria-label": "runs" }, element("div", { className: "picker" }, this.order, this.find), this.empty, this.table.box, this.chosen);
    this.element = element("div", {}, element("h1", { textContent: "Runs", tabIndex: -1 }), this.summary, this.campaigns, this.troubles, this.alertCard, this.list);
    this.runs = new LongList(this.table.box, { key: (row) => row.id, make: (row) => this.makeRow(row), update: (made, row) => made.show(row), step: 50, what: "runs" });
    this.runs.parent = this.table.body; // the button stands after the table, the rows in it
    this.warnings = new LongList(this.alerts, { key: (alert) => `${alert.row.id} ${alert.kind} ${alert.group} ${alert.text}`, make: makeAlert, step: 5, what: "alerts" });
    for (const [control, name] of [[this.order, "sort"], [this.find, "find"]]) control.addEventListener("input", () => { route.keep(name, control.value); this.update(); });
    this.clear.addEventListener("click", () => { ticked.clear(); this.update(); this.find.focus(); });
  }

  async update() {
    const all = [...rows.values()], wanted = this.find.value.trim().toLowerCase(), [, order] = ORDERS[this.order.value];
    const shown = all.filter((row) => !wanted || `${row.name} ${describe(row)} ${row.state}`.toLowerCase().includes(wanted)).sort((p, q) => order(p, q) || byName(p, q));
    const counts = STATES.map((word) => [word, all.filter((row) => row.state === word).length]).filter(([, n]) => n);
    text(this.summary, all.length ? `${plural(all.length, "run")}: ${counts.map(([word, n]) => `${n} ${word}`).join(", ")}.` : "");
    this.table.box.hidden = !shown.length;
    this.empty.hidden = Boolean(shown.length);
    text(this.empty, all.length ? `No run has “${this.find.value}” in its name, setting, rule, seed or state.` : `No run folder here yet: a run shows up as soon as something is trained into ${about.roots.join(" or ") || "the folder"}.`);
    this.runs.set(shown);
    reconcile(this.troubles, about.troubles, (sentence) => sentence, (sentence) => element("p", { className: "trouble", textContent: sentence }));
    const alerts = all.sort(byName).flatMap((row) => row.alerts.map((alert) => ({ ...alert, row })));
    this.alertCard.hidden = !alerts.length;
    this.warnings.set(alerts);
    this.campaigns.hidden = !about.campaigns.length;
    reconcile(this.campaigns, about.campaigns, (campaign) => campaign.id, (campaign) => link(`#/campaign/${campaign.id}`, ""), (made, campaign) => text(made, `Campaign ${campaign.name}: ${plural(campaign.runs, "run")}${campaign.failed ? `, ${campaign.failed} failed` : ""}`));
    this.showChosen();
  }

  makeRow(row) {
    const tick = element("input", { type: "checkbox", "aria-label": `compare ${row.name}` });
    tick.addEventListener("change", () => { if (tick.checked) ticked.add(row.id); else ticked.delete(row.id); this.showChosen(); });
    const name = link(`#/run/${row.id}`, row.name, "name"), what = element("span", { className: "soft" }), trouble = element("span", { className: "trouble" });
    const bar = new Bar(), done = element("span"), word = element("span"), time = element("span"), worst = element("span"), dots = element("span"), event = element("span", { className: "event" });
    const made = element("tr", { role: "row" }, ...cells([tick], [name, what, trouble], [bar.element, done], [word, time], [dots, worst], [event]));
    made.show = (now) => {
      tick.checked = ticked.has(now.id);
      text(what, describe(now));
      trouble.hidden = !now.trouble;
      text(trouble, now.trouble);
      bar.set(now.budget ? now.windows / now.budget : null);
      text(done, closed(now));
      word.replaceChildren(state(now.state));
      text(time, now.state === "training" ? left(now) : "");
      dots.replaceChildren(...(now.worst ? [groupDots(now.groups, now.worst)] : []));
      text(worst, now.worst ? `${now.worst.group} ${percent(now.worst.success)}` : "not evaluated yet");
      worst.classList.toggle("soft", !now.worst);
      text(event, now.event ? now.event.text : "");
      event.title = now.event ? now.event.text : "";
    };
    return made;
  }

  showChosen() {
    for (const id of ticked) if (!rows.has(id)) ticked.delete(id);
    this.chosen.hidden = !ticked.size;
    text(this.compare, ticked.size === 1 ? "1 run ticked: tick another to compare" : `Compare ${ticked.size} runs`);
    if (ticked.size > 1) this.compare.href = `#/compare/${[...ticked].join(",")}`; else this.compare.removeAttribute("href");
  }

  redraw() {}
}

function makeAlert(alert) {
  return element("li", {}, element("b", { textContent: alert.kind }), link(`#/run/${alert.row.id}`, alert.row.name), element("span", { textContent: alert.text }));
}
