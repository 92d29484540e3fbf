// Numbers and states as words.

export const percent = (share) => share === null || share === undefined ? "–" : `${Math.round(share * 100)}%`;
export const count = (number) => number.toLocaleString("en");
export const plural = (number, one, many = `${one}s`) => `${count(number)} ${number === 1 ? one : many}`;

export function duration(seconds) { // in the two largest units
  if (seconds === null || seconds === undefined) return "not known yet";
  if (seconds < 1) return seconds > 0 ? `${seconds.toPrecision(2)} s` : "0 s";
  const whole = Math.round(seconds), units = [[Math.floor(whole / 86400), "d"], [Math.floor(whole / 3600) % 24, "h"], [Math.floor(whole / 60) % 60, "min"], [whole % 60, "s"]];
  const first = Math.max(0, units.findIndex(([n]) => n));
  return units.slice(first, first + 2).filter(([n]) => n).map(([n, unit]) => `${n} ${unit}`).join(" ") || "0 s";
}

export function rate(number) { // three digits are enough
  if (number === null || number === undefined) return "–";
  return number >= 100 ? count(Math.round(number)) : number.toPrecision(2);
}

export const closed = (row) => row.budget ? `${count(row.windows)} of ${plural(row.budget, "window")}` : plural(row.windows, "window");

export function left(row) { // the time left, or why there is none to tell
  if (row.state === "finished") return "done";
  if (row.state === "training") return row.seconds_left === null ? row.budget ? "not known yet" : "no plan" : duration(row.seconds_left);
  return row.state;
}

export function about(row) { // what a run is, without its name
  const parts = [row.setting, row.label === row.rule ? row.rule : `${row.label} (${row.rule})`, `seed ${row.seed}`];
  return parts.filter(Boolean).join(", ");
}

export const lasting = (from, to) => to - from <= 1 ? `window ${count(to)}` : `windows ${count(from + 1)} to ${count(to)}`;
