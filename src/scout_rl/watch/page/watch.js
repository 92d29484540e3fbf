// The watch page: which view is shown, and what keeps it live. A view has `element`, `title`, `update()` after new records,
// `redraw()` after a resize, and `concerns(ids)` where not every changed run matters. The address after # says which view, so
// links lead into the page and the back button works.
import { element, whenResized } from "./draw.js";
import { Campaign } from "./campaign.js";
import { Compare } from "./compare.js";
import { ContextView } from "./context.js";
import { Overview } from "./overview.js";
import { RunView } from "./run.js";
import { Live, Refused, about, readOverview, rows } from "./server.js";

const main = document.getElementById("view"), connection = document.getElementById("connection");
const scrolled = new Map(); // address -> how far down it was left
let view = null, address = null, updating = null, again = false;

class Route { // #/run/ID/context/3?sort=frontier
  constructor(hash) {
    const [path, options] = hash.replace(/^#\/?/, "").split("?");
    this.parts = path.split("/").map(decoded);
    this.options = new URLSearchParams(options || "");
  }

  keep(name, value) { // an option of the view: in the address, without a step of the back button
    this.options.set(name, value);
    const options = this.options.toString();
    address = `#/${this.parts.join("/")}${options && `?${options}`}`;
    history.replaceState(null, "", address);
  }
}

function decoded(part) { // a part that is no encoded text stays as it is
  try { return decodeURIComponent(part); } catch { return part; }
}

function make(route) {
  const [kind, id, part, which] = route.parts;
  if (kind === "run" && part === "context") return new ContextView(route, id, Number(which));
  if (kind === "run") return new RunView(route, id);
  if (kind === "compare") return new Compare(route, (id || "").split(",").filter(Boolean));
  if (kind === "campaign") return new Campaign(route, id);
  return new Overview(route);
}

async function go() {
  if (location.hash === "#view") return; // the skip link
  if (view) scrolled.set(address, scrollY);
  address = location.hash || "#/";
  const first = view === null;
  view = make(new Route(address));
  view.again = refresh; // for a view that wants to be updated without news
  main.replaceChildren(view.element);
  document.title = view.title;
  const shown = view;
  await refresh();
  if (view !== shown) return;
  if (!first) main.querySelector("h1")?.focus({ preventScroll: true });
  scrollTo({ top: scrolled.get(address) || 0, behavior: "instant" });
  document.body.dataset.shown = address;
}

async function refresh() { // one update at a time; what changed meanwhile makes a second one
  if (updating) { again = true; return updating; }
  updating = (async () => {
    do {
      again = false;
      const shown = view;
      try {
        await shown.update();
        shown.loaded = true;
        shown.element.hidden = false;
        main.querySelector(".failure")?.remove();
      } catch (error) {
        shown.element.hidden = !shown.loaded; // nothing was read yet: no empty frames
        if (shown === view) fail(error);
      }
      if (shown !== view) again = true;
      document.title = view.title;
    } while (again);
  })().finally(() => { updating = null; });
  return updating;
}

function fail(error) { // in a sentence, above what is still shown
  main.querySelector(".failure")?.remove();
  if (error instanceof TypeError && /fetch|network/i.test(error.message)) return; // the connection's own word says it
  if (!(error instanceof Refused)) console.error(error);
  main.prepend(element("p", { className: "failure", role: "alert", textContent: `This could not be shown: ${rows.get(view.id)?.trouble || error.message}` }));
}

function connected(state) {
  const clock = new Date().toLocaleTimeString("en-GB");
  connection.className = `soft ${state}`;
  connection.textContent = state === "live" ? "live" : `Connection lost at ${clock}. Trying again.`;
  document.body.dataset.connection = state;
  document.getElementById("roots").textContent = about.roots.length ? `Reading ${about.roots.join(", ")}; scout-rl ${about.version}.` : "";
}

history.scrollRestoration = "manual";
addEventListener("hashchange", go);
whenResized(() => view && view.redraw());
try {
  await readOverview();
} catch { /* the connection tells it */ }
await go();
new Live((changed) => { if (!view.concerns || view.concerns(changed)) refresh(); }, connected);
