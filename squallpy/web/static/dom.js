// Elements and texts. All that comes from data is set as text, never as markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name.startsWith("aria-")) node.setAttribute(name, value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value != null) node.setAttribute(name, value);
  }
  node.append(...children.flat().filter(child => child != null).map(child => child instanceof Node ? child : String(child)));
  return node;
}

export const el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
export const svg = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);
export const $ = id => document.getElementById(id);

export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

// 1234567 → 1.23 M
export function count(n) {
  if (n == null || !isFinite(n)) return "–";
  for (const [size, unit] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e4, "k"]]) {
    if (Math.abs(n) >= size) return `${digits(n / (unit === "k" ? 1e3 : size))} ${unit}`;
  }
  return Number.isInteger(n) ? n.toLocaleString("en") : digits(n);
}

export function bytes(n) {
  if (n == null) return "–";
  for (const [size, unit] of [[2 ** 40, "TB"], [2 ** 30, "GB"], [2 ** 20, "MB"], [2 ** 10, "kB"]]) {
    if (n >= size) return `${digits(n / size)} ${unit}`;
  }
  return `${n} B`;
}

export function seconds(s) {
  if (s == null) return "–";
  if (s === 0) return "0 s";
  if (s < 1e-3) return `${digits(s * 1e6)} µs`;
  if (s < 1) return `${digits(s * 1e3)} ms`;
  if (s < 120) return `${digits(s)} s`;
  return s < 7200 ? `${digits(s / 60)} min` : `${digits(s / 3600)} h`;
}

function digits(n) {
  const size = Math.abs(n);
  return size >= 100 ? n.toFixed(0) : size >= 10 ? n.toFixed(1) : n.toFixed(2);
}

export const clock = at => new Date(at * 1000).toLocaleTimeString("en-GB");
