// The frontier explorer: one run at a time, drawn from its moves. draw.js stands before it in the same script.
const data = JSON.parse(document.getElementById("runs").textContent);
if (data.runs.length) explore();

function explore() {
  const at = (id) => document.getElementById(id), KINDS = ["advance", "retreat", "antistall"];
  const which = at("which"), block = at("block"), sort = at("sort"), view = at("view");
  const levels = new Levels(data.level), map = new HeatMap(at("heat"), at("tip"), levels, words), strip = new Chart(at("strip"));
  let run = null;

  async function decode(told) {
    if (told.ready) return told.ready;
    const arrays = await unpack(told);
    told.ready = {};
    if (arrays.steps) told.ready.frontier = frontier(told, arrays);
    if (arrays.mean) told.ready.trained = columns(told, arrays);
    return told.ready;
  }

  function frontier(told, a) { // play the moves: level of every context in every window
    const { contexts, windows, levels } = told, grid = new Uint8Array(windows * contexts), now = new Uint8Array(contexts);
    const moves = Array.from({ length: contexts }, () => []);
    if (a.start) now.set(a.start); else now.fill(levels - 1);
    let window = 0, done = 0;
    const fill = (end) => { for (; done < end; done++) grid.set(now, done * contexts); };
    for (let i = 0; i < a.steps.length; i++) {
      window += a.steps[i];
      fill(window);
      const context = a.context[i], from = now[context], to = a.to ? a.to[i] : from + (a.kind[i] === 1 ? 1 : -1);
      now[context] = to;
      moves[context].push({ window, kind: a.kind[i], from, to, evidence: a.evidence[i], known: a.recent[i] >> 4, won: a.recent[i] & 15 });
    }
    fill(windows);
    const status = a.status ? statuses(told, a) : null;
    return { a, grid, moves, status, width: 1, cols: windows, scale: 1 };
  }

  function statuses({ contexts, windows }, a) {
    const flat = new Uint8Array(contexts * windows);
    let place = 0;
    for (let i = 0; i < a.status.length; i++) { flat.fill(a.status[i], place, place + a.length[i]); place += a.length[i]; }
    return flat; // context by context
  }

  function columns(told, a) {
    return { a, grid: a.mean, moves: null, status: null, width: a.width[0], cols: a.mean.length / told.contexts, scale: (told.levels - 1) / UNIT };
  }

  function order(told, d) { // rows: by group, then by how far each context has come
    const mean = new Float64Array(told.contexts), count = new Float64Array(told.contexts);
    for (let c = 0; c < d.cols; c++) for (let x = 0; x < told.contexts; x++) {
      const v = d.grid[c * told.contexts + x];
      if (d.moves || v !== NONE) { mean[x] += v; count[x]++; }
    }
    const rows = [...Array(told.contexts).keys()], g = d.a.group;
    if (sort.value === "progress") rows.sort((p, q) => (g ? g[p] - g[q] : 0) || mean[p] / (count[p] || 1) - mean[q] / (count[q] || 1) || p - q);
    return rows;
  }

  function draw() {
    const { told, d } = run;
    run.rows = order(told, d);
    const retreats = d.moves && ((x) => d.moves[x].filter((m) => m.kind === 1).map((m) => m.window));
    map.draw({ contexts: told.contexts, windows: told.windows, cols: d.cols, width: d.width, grid: d.grid, scale: d.scale, levels: told.levels, group: d.a.group, retreats }, run.rows);
    curves();
    legend();
  }

  function curves() {
    const { told, d } = run, names = Object.keys(d.a).filter((n) => n.startsWith("curve ")), quarters = [0, 1, 2, 3, 4].map((k) => (told.windows * k) / 4);
    const caption = names.length ? `held-out success, 0 to 1: ${names.map((n, i) => n.slice(6) + (names.length > 1 ? ` (${DASH_WORDS[i % 4]})` : "")).join(", ")}` : "no held-out evaluation in these records";
    strip.draw({
      x: [0, told.windows], y: [0, 1], caption, margin: { top: 22, right: 0, bottom: 24 },
      lines: names.map((name, i) => ({ x: d.a.at, y: [...d.a[name]].map((v) => v / UNIT), colour: LINES[i % 4], dash: DASHES[i % 4] })),
      axis: quarters.map((w, k) => [w, `${k ? "" : "window "}${told.first + Math.round(w)}`]), // the same axis as the map above
    }, 122);
  }

  function legend() {
    const { told, d, both } = run;
    levels.legend(at("legend"), told.levels, ...(d.moves ? [[RETREAT, "retreat"]] : []));
    at("rows").textContent = `${told.contexts} contexts from top to bottom, ${told.windows} windows from left to right` +
      (d.a.group ? `; groups ${told.groups.join(", ")} parted by a line` : "") + (d.moves ? `; colour: frontier${both ? " (rollouts start from other levels too)" : ""}` : "; colour: mean level of rollouts, blank where a context was not drawn");
  }

  function words(window, row) { // what is known of one context in one window
    const { told, d, both, rows } = run, x = rows[row], column = Math.floor(window / d.width), v = d.grid[column * told.contexts + x];
    const group = d.a.group ? `, ${told.groups[d.a.group[x]]}` : "", lines = [`window ${told.first + window + 1}, context ${x}${group}`];
    if (!d.moves) {
      const place = column * told.contexts + x, trained = v === NONE ? "not drawn here" : `level ${(v * d.scale).toFixed(1)} on average`;
      const won = d.a.tried ? `${d.a.won[place]} of ${d.a.tried[place]} rollouts succeeded in ${d.width === 1 ? "this window" : `${d.width} windows`}` : "";
      lines.push(trained);
      if (both) lines.push(won);
      else lines.push(`event: none, ${told.rule} has no frontier`, `reason: the rule's own schedule${won && `; ${won}`}`);
      return lines;
    }
    lines.push(`frontier at level ${v}${v === 0 ? " (target start)" : ""}`);
    const past = d.moves[x].filter((m) => m.window <= window), last = past[past.length - 1];
    const told_of = (m) => `${KINDS[m.kind]} from level ${m.from} to ${m.to}`;
    const why = (m) => (told.model ? "the model's estimate changed; " : "") + (m.known ? `${m.won} of the last ${m.known} rollouts from level ${m.from} succeeded (${m.evidence} so far)` : `no rollout of its own from level ${m.from} yet`) + (m.kind === 2 ? "; neither clear, so a harder level is tried" : "");
    if (last && last.window === window) lines.push(`event: ${told_of(last)}`, `reason: ${why(last)}`);
    else {
      lines.push(last ? `event: none; last ${told_of(last)} in window ${told.first + last.window + 1}` : "event: none yet");
      const word = d.status ? data.words[d.status[x * told.windows + window]] : null;
      lines.push(`reason: ${word ? `${word[0]}, ${word[1]}` : told.model ? "the model's estimate moved it no further" : last ? `since then no test was met; then ${why(last)}` : "no test was met so far"}`);
    }
    return lines;
  }

  async function choose(index) {
    const told = data.runs[index], maps = await decode(told), both = Boolean(maps.frontier && maps.trained);
    run = { told, both, d: (both ? maps[view.value] : maps.frontier || maps.trained) };
    map.forget();
    which.value = String(index);
    view.hidden = !both;
    at("about").textContent = `${told.name}: ${told.windows} of ${told.budget} windows${told.first ? `, from window ${told.first + 1} on` : ""}` + (told.minutes ? `, ${told.minutes} minutes` : "") + (told.bank ? `, bank ${told.bank}…` : "");
    at("config").textContent = JSON.stringify({ config: { ...data.configs[told.config], seed: told.seed }, versions: data.versions[told.versions] }, null, 1);
    draw();
    document.body.dataset.drawn = told.name;
  }

  function list() {
    const mine = data.runs.map((r, i) => [r, i]).filter(([r]) => String(r.block) === block.value);
    which.replaceChildren(...mine.map(([r, i]) => new Option(`${r.label}, seed ${r.seed}`, String(i))));
    return choose(mine[0][1]);
  }

  data.blocks.forEach((label, i) => { if (data.runs.some((r) => r.block === i)) block.append(new Option(label, String(i))); });
  block.addEventListener("change", list);
  which.addEventListener("change", () => choose(Number(which.value)));
  sort.addEventListener("change", draw);
  view.addEventListener("change", () => choose(Number(which.value)));
  const step = (by) => { const to = which.selectedIndex + by; if (to >= 0 && to < which.options.length) choose(Number(which.options[to].value)); };
  at("back").addEventListener("click", () => step(-1));
  at("next").addEventListener("click", () => step(1));
  whenResized(() => run && draw());
  const first = data.runs.findIndex((r) => r.layout.some(([name]) => name === "steps"));
  block.value = String(data.runs[Math.max(0, first)].block);
  list();
}
