// What comes from the server: answers, and rows of runs as they change. Addresses are relative, so that a proxy may have a prefix.

export const rows = new Map(); // id -> row of a run
export const about = { campaigns: [], roots: [], troubles: [], clock: 0 };

export class Refused extends Error {} // the server's own sentence

export async function get(path) {
  const answer = await fetch(`api/${path}`), body = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Refused(body.error || `The server answers ${answer.status} to ${path}.`);
  return body;
}

export async function readOverview() {
  const overview = await get("overview");
  Object.assign(about, overview);
  rows.clear();
  for (const row of overview.runs) rows.set(row.id, row);
}

export class Live { // server-sent events; `changed(ids)` after rows changed, `state(word)` when the connection is lost or back
  constructor(changed, state) {
    Object.assign(this, { changed, state, wait: 1000, source: null, timer: 0 });
    document.addEventListener("visibilitychange", () => document.hidden ? this.close() : this.open()); // a browser allows six at once
    addEventListener("online", () => this.open());
    this.open();
  }

  open() {
    if (this.source || document.hidden) return;
    clearTimeout(this.timer);
    const source = new EventSource("api/updates");
    this.source = source;
    source.addEventListener("hello", async () => { // rows may have changed before the connection stood
      try {
        await readOverview();
      } catch {
        return this.lost(source);
      }
      this.wait = 1000;
      this.state("live");
      this.changed([...rows.keys()]);
    });
    source.addEventListener("rows", (event) => {
      const told = JSON.parse(event.data);
      about.clock = told.clock;
      for (const row of told.rows) rows.set(row.id, row);
      for (const id of told.gone) rows.delete(id);
      this.changed([...told.rows.map((row) => row.id), ...told.gone]);
    });
    source.addEventListener("error", () => this.lost(source));
  }

  lost(source) {
    if (source !== this.source) return;
    this.close();
    this.state("lost");
    this.timer = setTimeout(() => this.open(), this.wait);
    this.wait = Math.min(10000, this.wait * 1.6);
  }

  close() {
    if (this.source) this.source.close();
    this.source = null;
  }
}
