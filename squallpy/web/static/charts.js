// Lines over time, as SVG: one series per line, the newest second at the right edge.

import { bytes, clock, el, setText, svg } from "./dom.js";

const WIDTH = 600, HEIGHT = 130, LEFT = 0, TOP = 8, BOTTOM = 4;

// A chart: {title, format, series: [{name, of: second → number | undefined}]}
export class Chart {
  constructor({ title, format, series }) {
    this.format = format;
    this.series = series;
    this.legend = series.map(each => el("span", { class: "value" }));
    this.top = el("span", { class: "top number" });
    this.at = el("span", { class: "quiet number" });
    this.paths = series.map((_, i) => svg("path", { class: `line line-${i}`, fill: "none" }));
    this.areas = series.map((_, i) => svg("path", { class: `area area-${i}` }));
    this.rule = svg("line", { class: "rule", y1: 0, y2: HEIGHT, visibility: "hidden" });
    this.svg = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img" },
      [0.5, 1].map(part => svg("line", { class: "grid", x1: 0, x2: WIDTH, y1: this.height(part), y2: this.height(part) })),
      svg("line", { class: "base", x1: 0, x2: WIDTH, y1: this.height(0), y2: this.height(0) }),
      this.areas, this.paths, this.rule);
    this.svg.addEventListener("pointermove", event => this.point(event));
    this.svg.addEventListener("pointerleave", () => this.point(null));
    this.node = el("figure", { class: "card chart" },
      el("figcaption", {}, el("h3", {}, title), el("p", { class: "legend" },
        series.map((each, i) => el("span", {}, el("i", { class: `swatch swatch-${i}` }), `${each.name} `, this.legend[i])), this.at)),
      el("div", { class: "plot" }, this.top, this.svg));
    this.title = title;
  }

  height(part) {
    return HEIGHT - BOTTOM - part * (HEIGHT - TOP - BOTTOM);
  }

  draw(records, now, span) {
    this.records = records.filter(each => each.at > now - span && each.at < Math.floor(now));  // whole seconds
    this.now = now;
    this.span = span;
    const values = this.series.map(each => this.records.map(each.of));
    const most = highest(values.flat().filter(value => value != null)), unit = this.format === bytes ? 1024 ** Math.floor(Math.log2(most || 1) / 10) : 1;
    const top = unit * nice(most / unit);
    setText(this.top, top ? this.format(top) : "");
    values.forEach((line, i) => {
      const points = line.map((value, n) => value == null ? null
        : [this.place(this.records[n].at), this.height(top ? Math.min(1, value / top) : 0)]);
      this.paths[i].setAttribute("d", joined(points, this.gap()));
      this.areas[i].setAttribute("d", i === 0 ? shaded(points, this.height(0)) : "");
    });
    if (!this.pointed) this.tell(this.records.length - 1);
    const last = this.series.map((each, i) => `${each.name} ${this.legend[i].textContent}`).join(", ");
    this.svg.setAttribute("aria-label", `${this.title}: ${last}`);
  }

  gap() {
    return 5 * WIDTH / this.span;
  }

  place(at) {
    return LEFT + (WIDTH - LEFT) * (1 - (this.now - at) / this.span);
  }

  tell(n) {
    const record = this.records[n];
    const known = each => this.records.slice(0, n + 1).map(each.of).filter(value => value != null).at(-1);
    this.series.forEach((each, i) => setText(this.legend[i], record ? this.format(known(each)) : "–"));
    setText(this.at, record && this.pointed ? clock(record.at) : "");
  }

  point(event) {
    this.pointed = Boolean(event && this.records?.length);
    this.rule.setAttribute("visibility", this.pointed ? "visible" : "hidden");
    if (!this.pointed) return this.records && this.tell(this.records.length - 1);
    const box = this.svg.getBoundingClientRect();
    const at = this.now - this.span * (1 - (event.clientX - box.left) / box.width);
    const distance = each => Math.abs(each.at - at);
    const nearest = this.records.reduce((best, each, n) => distance(each) < distance(this.records[best]) ? n : best, 0);
    const x = this.place(this.records[nearest].at);
    this.rule.setAttribute("x1", x);
    this.rule.setAttribute("x2", x);
    this.tell(nearest);
  }
}

// The greatest value, unless a few are so great that nothing would be seen of the others.
function highest(values) {
  const ordered = values.sort((a, b) => a - b), most = ordered.at(-1) ?? 0, usual = ordered[Math.floor(0.9 * (ordered.length - 1))] ?? 0;
  return most > 8 * usual && usual > 0 ? 2 * usual : most;
}

// The first of 1, 2, 5, 10, … that is not smaller.
function nice(value) {
  if (!(value > 0)) return 0;
  const size = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map(step => step * size).find(step => step >= value * 0.999);
}

// Points are joined unless they are far apart.
function joined(points, gap) {
  let path = "", last = null;
  for (const point of points.filter(Boolean)) {
    const follows = last && point[0] - last[0] <= gap;
    path += `${follows ? "L" : "M"}${point[0].toFixed(1)} ${point[1].toFixed(1)}${follows ? "" : "h0.01"}`;
    last = point;
  }
  return path;
}

function shaded(points, base) {
  const known = points.filter(Boolean);
  if (known.length < 2) return "";
  const line = known.map(([x, y]) => `L${x.toFixed(1)} ${y.toFixed(1)}`).join("").slice(1);
  return `M${known[0][0].toFixed(1)} ${base}L${line}L${known.at(-1)[0].toFixed(1)} ${base}Z`;
}
