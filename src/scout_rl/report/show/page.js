"use strict";
// The frontier explorer: one run at a time, drawn from its moves. No library, no network.
(() => {
  const data = JSON.parse(document.getElementById("runs").textContent);
  if (!data.runs.length) return;
  const at = (id) => document.getElementById(id);
  const heat = at("heat"), strip = at("strip"), tip = at("tip"), which = at("which"), block = at("block"), sort = at("sort"), view = at("view");
  const { stops: STOPS, target: TARGET, easiest: EASIEST } = data.level;
  const KINDS = ["advance", "retreat", "antistall"], NONE = 255, UNIT = 200;
  const DASHES = [[], [7, 4], [2, 3], [9, 3, 2, 3]], LINES = ["#0072b2", "#d98200", "#009e73", "#cc79a7"];
  let run = null, cursor = null;

  function colour(level, levels) { // the mean level of a column lies between two levels
    const place = (level / Math.max(1, levels - 1)) * (STOPS.length - 1), i = Math.min(Math.floor(place), STOPS.length - 2);
    return STOPS[i].map((v, k) => Math.round(v + (STOPS[i + 1][k] - v) * (place - i)));
  }

  async function inflate(text) {
    const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Response(stream).arrayBuffer();
  }

  async function decode(told) {
    if (told.ready) return told.ready;
    const buffer = await inflate(told.data), arrays = {};
    let offset = 0;
    for (const [name, size, length] of told.layout) {
      const part = buffer.slice(offset, offset + size * length);
      arrays[name] = size === 1 ? new Uint8Array(part) : size === 2 ? new Uint16Array(part) : new Uint32Array(part);
      offset += size * length;
    }
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

  function size(canvas, height) {
    const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth;
    canvas.style.height = `${height}px`;
    canvas.width = Math.max(1, Math.round(width * ratio));
    canvas.height = Math.round(height * ratio);
    const pen = canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    return [pen, width];
  }

  function draw() {
    const { told, d } = run, height = Math.min(520, Math.max(160, told.contexts * 3));
    run.rows = order(told, d);
    const image = new ImageData(d.cols, told.contexts);
    run.rows.forEach((x, row) => {
      for (let c = 0; c < d.cols; c++) {
        const v = d.grid[c * told.contexts + x], p = (row * d.cols + c) * 4;
        if (!d.moves && v === NONE) continue;
        const [r, g, b] = colour(v * d.scale, told.levels);
        image.data.set([r, g, b, 255], p);
      }
    });
    const whole = document.createElement("canvas");
    whole.width = d.cols; whole.height = told.contexts;
    whole.getContext("2d").putImageData(image, 0, 0);
    const [pen, width] = size(heat, height);
    pen.imageSmoothingEnabled = false;
    pen.drawImage(whole, 0, 0, width * (d.cols * d.width) / told.windows, height);
    run.height = height; run.width = width;
    marks(pen);
    curves();
    legend();
    if (cursor) show(cursor.window, cursor.row);
  }

  function marks(pen) { // group borders, and moves toward easier starts
    const { told, d, rows, width, height } = run, one = height / told.contexts;
    pen.strokeStyle = "#ffffff"; pen.lineWidth = 2;
    rows.forEach((x, row) => {
      if (d.a.group && row && d.a.group[x] !== d.a.group[rows[row - 1]]) {
        pen.beginPath(); pen.moveTo(0, row * one); pen.lineTo(width, row * one); pen.stroke();
      }
      if (!d.moves) return;
      pen.fillStyle = "#e8000b";
      for (const m of d.moves[x]) if (m.kind === 1) pen.fillRect((m.window / told.windows) * width, row * one, 2, Math.max(1.5, one));
    });
  }

  function curves() {
    const { told, d } = run, names = Object.keys(d.a).filter((n) => n.startsWith("curve "));
    const [pen, width] = size(strip, 122), ink = getComputedStyle(document.body).color;
    pen.font = "11px system-ui, sans-serif";
    pen.strokeStyle = ink; pen.globalAlpha = 0.2;
    for (const y of [22, 60, 98]) { pen.beginPath(); pen.moveTo(0, y); pen.lineTo(width, y); pen.stroke(); }
    pen.globalAlpha = 1; pen.lineWidth = 1.8;
    names.forEach((name, i) => {
      pen.strokeStyle = LINES[i % LINES.length]; pen.setLineDash(DASHES[i % DASHES.length]);
      pen.beginPath();
      d.a[name].forEach((v, k) => {
        const x = (d.a.at[k] / told.windows) * width, y = 98 - (v / UNIT) * 76;
        if (k) pen.lineTo(x, y); else pen.moveTo(x, y);
      });
      pen.stroke();
    });
    pen.setLineDash([]); pen.fillStyle = ink;
    for (let k = 0; k <= 4; k++) { // window numbers, the same axis as the map above
      pen.textAlign = k === 0 ? "left" : k === 4 ? "right" : "center";
      pen.fillText(`${k ? "" : "window "}${told.first + Math.round((told.windows * k) / 4)}`, (width * k) / 4, 116);
    }
    pen.textAlign = "left";
    const what = names.length ? `held-out success, 0 to 1: ${names.map((n, i) => n.slice(6) + (names.length > 1 ? ` (${["solid", "dashed", "dotted", "dash-dot"][i % 4]})` : "")).join(", ")}` : "no held-out evaluation in these records";
    pen.fillText(what, 4, 14);
  }

  function legend() {
    const box = at("legend"), { told, d, both } = run;
    box.replaceChildren();
    const add = (background, text) => {
      const item = document.createElement("span"), swatch = document.createElement("i");
      swatch.style.background = background;
      item.append(swatch, text);
      box.append(item);
    };
    for (let level = 0; level < told.levels; level++)
      add(`rgb(${colour(level, told.levels)})`, `level ${level}${level ? level === told.levels - 1 ? `: ${EASIEST}` : "" : `: ${TARGET}`}`);
    if (d.moves) add("#e8000b", "retreat");
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

  function show(window, row) {
    const { told, width, height } = run;
    window = Math.max(0, Math.min(told.windows - 1, window)); row = Math.max(0, Math.min(told.contexts - 1, row));
    cursor = { window, row };
    const [head, ...rest] = words(window, row), title = document.createElement("b");
    title.textContent = head;
    tip.replaceChildren(title, ...rest.map((line) => Object.assign(document.createElement("span"), { textContent: line })));
    tip.hidden = false;
    const x = ((window + 0.5) / told.windows) * width, y = ((row + 0.5) / told.contexts) * height;
    const left = x + tip.offsetWidth + 18 < width ? x + 14 : Math.max(0, x - tip.offsetWidth - 14);
    tip.style.left = `${Math.min(left, Math.max(0, width - tip.offsetWidth))}px`;
    tip.style.top = `${Math.max(0, Math.min(y + 14, height - tip.offsetHeight))}px`;
  }

  function point(event) {
    if (!run) return;
    const box = heat.getBoundingClientRect();
    show(Math.floor(((event.clientX - box.left) / box.width) * run.told.windows), Math.floor(((event.clientY - box.top) / box.height) * run.told.contexts));
  }

  async function choose(index) {
    const told = data.runs[index], maps = await decode(told), both = Boolean(maps.frontier && maps.trained);
    run = { told, both, d: (both ? maps[view.value] : maps.frontier || maps.trained) }; cursor = null; tip.hidden = true;
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
  heat.addEventListener("pointermove", point);
  heat.addEventListener("pointerdown", point);
  heat.addEventListener("pointerleave", () => { tip.hidden = true; });
  heat.addEventListener("keydown", (event) => {
    const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (!way || !run) return;
    event.preventDefault();
    const far = event.shiftKey ? 10 : 1, from = cursor || { window: 0, row: 0 };
    show(from.window + way[0] * far, from.row + way[1] * far);
  });
  let waiting = 0;
  addEventListener("resize", () => { clearTimeout(waiting); waiting = setTimeout(() => run && draw(), 80); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => run && draw());
  const first = data.runs.findIndex((r) => r.layout.some(([name]) => name === "steps"));
  block.value = String(data.runs[Math.max(0, first)].block);
  list();
})();
