// The plan as a picture: what is read at the left, results at the right, views between them.

import { $, bytes, count, el, setText, svg } from "./dom.js";

const WIDTH = 176, HEIGHT = 74, ACROSS = 60, DOWN = 18, MARGIN = 10;
const WORK = { "O(1)": 1, "O(log n)": 4, "O(slice)": 8 };
const HOT = 0.4;
const MANY = 24;  // boxes: of more, one result is shown at a time

export class PlanPicture {
  constructor() {
    this.result = null;
    $("plan-of").addEventListener("change", event => {
      this.result = event.target.value;
      this.draw();
    });
  }

  show(whole) {
    const results = whole.nodes.filter(node => node.kind === "result");
    this.whole = whole;
    this.sharers = new Map();  // the results that a view is for
    for (const result of results) {
      for (const node of part(whole, result.id).nodes) this.sharers.set(node.id, (this.sharers.get(node.id) ?? 0) + 1);
    }
    if (this.result && !results.some(node => node.id === this.result)) this.result = null;
    if (this.result == null) this.result = whole.nodes.length > MANY ? results[0]?.id ?? "" : "";
    $("plan-of").replaceChildren(el("option", { value: "" }, "all views"), ...results.map(node => el("option", { value: node.id }, node.name)));
    $("plan-of").value = this.result;
    $("plan-of").hidden = results.length < 2;
    this.draw();
  }

  draw() {
    const graph = this.result ? part(this.whole, this.result) : this.whole, picture = $("picture"), { columns, routes } = layers(graph);
    this.graph = graph;
    $("node").hidden = true;
    this.boxes = new Map();
    this.lines = [];
    if (!graph.nodes.length) {
      picture.replaceChildren(el("p", { class: "empty" }, "No view is kept fresh yet. ",
        "CREATE MATERIALIZED VIEW in the session, and its plan is here."));
      return;
    }
    const tall = column => column.reduce((sum, item, y) => sum + height(item) + below(column, y), 0), tallest = Math.max(...columns.map(tall));
    const width = columns.length * (WIDTH + ACROSS) - ACROSS + 2 * MARGIN;
    const place = new Map();  // the upper left corner of each item
    columns.forEach((column, x) => {
      let y = MARGIN + (tallest - tall(column)) / 2;
      column.forEach((item, n) => {
        place.set(item.id, [MARGIN + x * (WIDTH + ACROSS), y + height(item) / 2]);
        y += height(item) + below(column, n);
      });
    });
    const all = tallest + 2 * MARGIN, drawing = svg("svg", { viewBox: `0 0 ${width} ${all}`, width, class: "graph" });
    drawing.style.setProperty("min-width", `${0.7 * width}px`);
    for (const [edge, bends] of routes) drawing.append(this.line(edge, bends.map(id => place.get(id))));
    for (const node of graph.nodes) {
      const [x, y] = place.get(node.id);
      drawing.append(this.box(node, x, y - HEIGHT / 2));
    }
    picture.replaceChildren(drawing);
    $("plan-key").replaceChildren(
      el("span", {}, el("i", { class: "stroke adds" }), "adds to"), el("span", {}, el("i", { class: "stroke reads" }), "is looked up"),
      el("span", {}, el("i", { class: "hot-mark" }), "hot: much of the work or of the state"));
  }

  // A line through the bends of an edge, straight where it passes a column.
  line(edge, bends) {
    const [[x, y], ...more] = bends;
    let path = `M${x + WIDTH} ${y}`, from = [x + WIDTH, y];
    more.forEach(([u, v], i) => {
      if (u > from[0]) {
        const middle = (from[0] + u) / 2;
        path += `C${middle} ${from[1]} ${middle} ${v} ${u} ${v}`;
      } else {  // within a column
        path += `C${from[0] + ACROSS / 2} ${from[1]} ${from[0] + ACROSS / 2} ${v} ${u + WIDTH} ${v}`;
      }
      if (i < more.length - 1) path += `H${u + WIDTH}`;
      from = [u + WIDTH, v];
    });
    const line = svg("path", { d: path, class: `edge ${edge.kind}`, "data-cost": edge.cost });
    this.lines.push([edge, line]);
    return line;
  }

  box(node, x, y) {
    const figures = [svg("text", { x: 12, y: 46, class: "figure" }), svg("text", { x: 12, y: 63, class: "figure" })];
    const heat = svg("rect", { x: 0, y: HEIGHT - 3, width: 0, height: 3, class: "heat" });
    const mark = svg("text", { x: WIDTH - 10, y: 24, class: "hot-text", "text-anchor": "end" });
    const title = svg("text", { x: 12, y: 25, class: "name" }, short(node.name, 20));
    const box = svg("g", { class: `node ${node.kind}`, transform: `translate(${x} ${y})`, tabindex: 0, role: "button",
      onclick: () => this.tell(node), onkeydown: event => (event.key === "Enter" || event.key === " ") && (event.preventDefault(), this.tell(node)) },
    svg("title", {}, node.name), svg("rect", { width: WIDTH, height: HEIGHT, rx: 7, class: "body" }), title, figures, heat, mark);
    this.boxes.set(node.id, { node, box, figures, heat, mark });
    return box;
  }

  // Figures of now: rates by relation, and records and bytes by pool.
  update(rates, state) {
    if (!this.boxes) return;
    const work = new Map(), total = { work: 0, bytes: 0 };
    for (const edge of this.whole.edges) {
      if (edge.kind === "adds") {
        const rate = rates.get(edge.from.replace(/^relation /, "")) ?? 0, done = rate * this.weight(edge, state);
        work.set(edge.to, (work.get(edge.to) ?? 0) + done);
        total.work += done;
      }
    }
    for (const [name, { bytes }] of state) total.bytes += name === "strings" ? 0 : bytes;
    const many = this.whole.nodes.length > 2;
    for (const [id, { node, box, figures, heat, mark }] of this.boxes) {
      const held = state.get(node.pool ?? id) ?? (node.kind === "stream" ? state.get(`ledger ${node.name}`) : null);
      const share = total.work ? (work.get(id) ?? 0) / total.work : 0, weight = total.bytes && held ? held.bytes / total.bytes : 0;
      const rate = rates.get(node.name);
      setText(figures[0], rate != null && node.kind !== "result" && node.kind !== "view" ? `${count(rate)} tuples/s`
        : node.kind === "auxiliary" ? "rows of groups" : held ? `${count(held.records)} records` : "");
      const shared = node.kind === "view" && this.sharers.get(id) > 1 ? ` · for ${this.sharers.get(id)} views` : "";
      setText(figures[1], held ? `${bytes(held.bytes)}${node.pool ? shared : " ledger"}` : node.kind === "table" ? "table" : "");
      heat.setAttribute("width", WIDTH * Math.max(share, node.pool ? weight : 0));
      const why = many && node.pool && share >= HOT ? `work ${Math.round(100 * share)} %` : many && node.pool && weight >= HOT ? `state ${Math.round(100 * weight)} %` : "";
      setText(mark, why ? `hot · ${why}` : short(node.component ?? "", 14));
      mark.classList.toggle("plain", !why);
      box.classList.toggle("hot", Boolean(why));
    }
    for (const [edge, line] of this.lines) {
      const by = edge.kind === "adds" ? edge.from.replace(/^relation /, "") : edge.by;
      line.classList.toggle("flows", (rates.get(by) ?? 0) > 0);
    }
  }

  // The work of a statement for a tuple, by its cost mark; a scan looks at all records of what it reads.
  weight(edge, state) {
    if (edge.cost !== "O(n)") return WORK[edge.cost] ?? 1;
    const read = this.whole.edges.filter(each => each.kind === "reads" && each.text === edge.text).map(each => state.get(each.from)?.records ?? 0);
    return Math.max(8, ...read);
  }

  tell(node) {
    const into = this.graph.edges.filter(edge => edge.to === node.id && edge.kind !== "reads");
    const out = this.graph.edges.filter(edge => edge.from === node.id);
    const list = (title, edges) => edges.length ? [el("h4", {}, title), el("ul", { class: "formulas" }, unique(edges).map(edge =>
      el("li", {}, el("code", {}, edge.text || edge.to.replace(/^relation /, "")), " ", el("span", { class: `cost ${cost(edge.cost)}` }, edge.cost))))] : [];
    $("node").hidden = false;
    $("node").replaceChildren(el("h3", {}, node.name, el("span", { class: "quiet" }, ` ${node.kind}`)),
      el("pre", {}, node.text), ...(node.component ? [el("p", {}, `component ${node.component}`)] : []),
      ...list("changed by", into), ...list(node.pool ? "looked up by" : "changes", out));
    $("node").scrollIntoView({ block: "nearest" });
  }
}

export const cost = mark => ({ "O(1)": "one", "O(log n)": "log", "O(slice)": "slice", "O(n)": "all" })[mark] ?? "one";

const unique = edges => [...new Map(edges.map(edge => [edge.text || edge.to, edge])).values()];
const short = (text, most) => text.length > most ? `${text.slice(0, most - 1)}…` : text;

// One line between two nodes, of the dearest kind that there is.
function merged(edges) {
  const found = new Map();
  for (const edge of edges) {
    const key = `${edge.from}\0${edge.to}`, other = found.get(key);
    if (!other || other.kind === "reads") found.set(key, edge);
  }
  return [...found.values()].filter(edge => edge.from !== edge.to);
}

const height = item => item.bend ? 2 : HEIGHT;
const below = (column, y) => y === column.length - 1 ? 0 : column[y].bend && column[y + 1].bend ? 9 : DOWN;

// What a result is made of.
function part(graph, result) {
  const kept = new Set([result]), left = [result];
  while (left.length) {
    const to = left.pop();
    for (const edge of graph.edges) {
      if (edge.to === to && !kept.has(edge.from)) {
        kept.add(edge.from);
        left.push(edge.from);
      }
    }
  }
  return { nodes: graph.nodes.filter(node => kept.has(node.id)), edges: graph.edges.filter(edge => kept.has(edge.from) && kept.has(edge.to)) };
}

// Columns of nodes, each behind all that it is made of, and the ways of edges: bends stand in the columns that they pass.
function layers(graph) {
  const depth = new Map(), edges = merged(graph.edges);
  for (const node of graph.nodes) depth.set(node.id, node.kind === "stream" || node.kind === "table" ? 0 : 1);
  for (let round = 0; round < graph.nodes.length; round++) {
    let moved = false;
    for (const { from, to, kind } of edges) {
      const least = depth.get(from) + 1, back = edges.some(other => other.from === to && other.to === from);
      if (depth.has(to) && depth.get(to) < least && !back && least <= graph.nodes.length && (kind !== "reads" || least <= 6)) {
        depth.set(to, least);
        moved = true;
      }
    }
    if (!moved) break;
  }
  const last = Math.max(0, ...depth.values());
  for (const node of graph.nodes) if (node.kind === "result") depth.set(node.id, last);
  const used = [...new Set(depth.values())].sort((a, b) => a - b), columns = used.map(() => []), at = id => used.indexOf(depth.get(id));
  for (const node of graph.nodes) columns[at(node.id)].push({ id: node.id });
  const routes = edges.filter(({ from, to }) => depth.has(from) && depth.has(to)).map(edge => {
    const bends = [];
    for (let x = at(edge.from) + 1; x < at(edge.to); x++) {
      const id = `${edge.from}\0${edge.to}\0${x}`;
      columns[x].push({ id, bend: true });
      bends.push(id);
    }
    return [edge, [edge.from, ...bends, edge.to]];
  });
  untangle(columns, routes);
  return { columns, routes };
}

// Sorts columns by the mean place of neighbours, forth and back.
function untangle(columns, routes) {
  const links = routes.flatMap(([, way]) => way.slice(1).map((id, i) => [way[i], id])), place = new Map();
  const note = column => column.forEach((item, y) => place.set(item.id, (y + 0.5) / column.length));
  columns.forEach(note);
  for (let round = 0; round < 6; round++) {
    const forth = round % 2 === 0, side = forth ? 1 : 0;
    for (const column of forth ? columns.slice(1) : columns.slice(0, -1).reverse()) {
      const mean = new Map(column.map(({ id }) => {
        const near = links.filter(link => link[side] === id).map(link => place.get(link[1 - side]));
        return [id, near.length ? near.reduce((a, b) => a + b) / near.length : place.get(id)];
      }));
      column.sort((a, b) => mean.get(a.id) - mean.get(b.id));
      note(column);
    }
  }
}
