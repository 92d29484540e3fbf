"use strict";
// One line per run.
(async () => {
  const main = document.getElementById("runs");
  const draw = (rows) => main.replaceChildren(...rows.map((row) => {
    const line = document.createElement("p");
    line.textContent = `${row.name}: ${row.state}, ${row.windows} windows ${row.trouble}`;
    return line;
  }));
  const rows = new Map((await (await fetch("/api/overview")).json()).runs.map((row) => [row.id, row]));
  draw([...rows.values()]);
  new EventSource("/api/updates").addEventListener("rows", (message) => {
    const news = JSON.parse(message.data);
    for (const row of news.rows) rows.set(row.id, row);
    for (const id of news.gone) rows.delete(id);
    draw([...rows.values()]);
  });
})();
