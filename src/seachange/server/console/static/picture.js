// Building blocks of the pages: elements, tables, charts. Text is always set as text, never as HTML.

export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}

const SVG = "http://www.w3.org/2000/svg";

function shape(name, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

// The rows of an answer as objects by column name.
export function records({ columns, rows }) {
  return rows.map((row) => Object.fromEntries(columns.map((column, index) => [column, row[index]])));
}

const HEADINGS = { pid: "session number", seq: "sequence number" };
// Numbers that name something are written without separators.
const NAMES = new Set(["id", "pid", "job_id", "epoch", "version", "newest_version", "layout_id", "low_water", "write_mark"]);

export function heading(column) {
  return HEADINGS[column] ?? column.replaceAll("_", " ");
}

function cell(value, column, isCode) {
  if (value instanceof Node) return element("td", {}, value);
  const isNumber = typeof value === "number";
  const text = isNumber && NAMES.has(column) ? String(value) : shown(value);
  return element("td", { class: isNumber ? "number" : isCode ? "code" : null }, text);
}

export function shown(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return value.toLocaleString("en", { maximumFractionDigits: 2 });
  if (typeof value === "string" && /^\d{4}-\d\d-\d\dT/.test(value)) return moment(value);
  return String(value);
}

export function moment(text) {
  return text ? new Date(text).toLocaleString(undefined, { dateStyle: "short", timeStyle: "medium" }) : "";
}

export function table(caption, columns, rows, codes = []) {
  if (!rows.length) return element("p", { class: "empty" }, `${caption}: none.`);
  const head = element("tr", {}, columns.map((column) => element("th", { scope: "col" }, heading(column))));
  const body = rows.map((row) => element("tr", {}, columns.map((column) => cell(row[column], column, codes.includes(column)))));
  return element(
    "div",
    { class: "wide", tabindex: "0", role: "region", "aria-label": caption },
    element("table", {}, element("caption", {}, caption), element("thead", {}, head), element("tbody", {}, body)),
  );
}

const WIDTH = 900;
const HEIGHT = 170;
const LEFT = 56;
const BOTTOM = 24;

// A line over time; `shades` are spans of time, in milliseconds, with a name.
export function chart(caption, unit, samples, field, shades = []) {
  const points = samples.filter((sample) => sample[field] !== null);
  const first = samples.length ? samples[0].at : 0;
  const last = samples.length ? samples[samples.length - 1].at : 1;
  const top = Math.max(1, ...points.map((sample) => sample[field]));
  const x = (at) => LEFT + ((at - first) / Math.max(last - first, 1)) * (WIDTH - LEFT);
  const y = (value) => (HEIGHT - BOTTOM) * (1 - value / (top * 1.1));
  const drawing = shape("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": caption });
  for (const shade of shades) {
    const from = Math.max(shade.from, first);
    const to = Math.min(shade.to, last);
    if (to <= from) continue;
    const place = { class: "shade", x: x(from), y: 0, width: Math.max(x(to) - x(from), 2), height: HEIGHT - BOTTOM };
    drawing.append(shape("rect", place, shape("title", {}, shade.name)));
  }
  drawing.append(shape("line", { class: "axis", x1: LEFT, x2: WIDTH, y1: HEIGHT - BOTTOM, y2: HEIGHT - BOTTOM }));
  drawing.append(shape("text", { x: 0, y: 12 }, `${shown(top)} ${unit}`));
  drawing.append(shape("text", { x: 0, y: HEIGHT - BOTTOM }, "0"));
  drawing.append(shape("text", { x: LEFT, y: HEIGHT - 6 }, clock(first)));
  drawing.append(shape("text", { x: WIDTH, y: HEIGHT - 6, "text-anchor": "end" }, clock(last)));
  const path = points.map((sample, index) => `${index ? "L" : "M"}${x(sample.at).toFixed(1)} ${y(sample[field]).toFixed(1)}`);
  if (points.length) drawing.append(shape("path", { class: "line", d: path.join(" ") }));
  const newest = points.length ? shown(points[points.length - 1][field]) : "no statements";
  return element("figure", {}, element("figcaption", {}, `${caption}: now ${newest} ${points.length ? unit : ""}`), drawing);
}

function clock(at) {
  return at ? new Date(at).toLocaleTimeString() : "";
}
