// The contents of views: paged, searched and sorted, as of one whole batch each time.

import { $, count, el, setText } from "./dom.js";

const LIMIT = 50, LEAST = 1000, SHARE = 20;  // rows; ms between two looks, and as a multiple of what one took

export class Views {
  constructor() {
    this.known = [];
    this.name = null;
    this.reset();
    this.due = 0;
    $("search").addEventListener("input", () => { this.offset = 0; this.later(150); });
    $("before").addEventListener("click", () => this.turn(-1));
    $("after").addEventListener("click", () => this.turn(1));
    $("view-list").addEventListener("keydown", event => {
      const step = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
      if (step) { event.preventDefault(); this.move(step); }
    });
  }

  reset() {
    this.offset = 0;
    this.sort = null;
    this.descending = false;
    this.shown = null;
  }

  list(views) {
    this.known = views;
    $("view-list").replaceChildren(...views.map(view => el("button", { role: "option", tabindex: -1, "data-name": view.name, onclick: () => this.choose(view.name) },
      el("span", {}, view.name), el("span", { class: "quiet" }, view.kind))));
    if (!views.length) $("view-list").replaceChildren(el("p", { class: "empty" }, "no views yet"));
    if (!views.some(view => view.name === this.name)) this.choose(views[0]?.name ?? null);
    else this.mark();
  }

  choose(name) {
    this.name = name;
    this.reset();
    $("search").value = "";
    const view = this.known.find(each => each.name === name);
    setText($("view-name"), name ?? "");
    setText($("view-about"), "");
    setText($("view-query").querySelector("pre"), view?.query ?? "");
    $("view-query").hidden = !view;
    $("rows").replaceChildren();
    const path = name == null ? "" : `/views/${encodeURIComponent(name)}`;
    $("view-links").replaceChildren(...(name == null ? [] : ["csv", "json", "arrow"].map(format =>
      el("a", { href: `${path}?format=${format}${format === "json" ? "&limit=10000" : ""}`, download: `${name}.${format}` }, format))));
    this.mark();
    this.later(0);
  }

  mark() {
    for (const each of $("view-list").querySelectorAll("[role=option]")) each.setAttribute("aria-selected", each.dataset.name === this.name);
  }

  move(step) {
    const at = this.known.findIndex(view => view.name === this.name), next = this.known[at + step];
    if (next) this.choose(next.name);
  }

  turn(step) {
    const offset = this.offset + step * LIMIT;
    if (offset < 0 || (step > 0 && offset >= (this.shown?.matched ?? 0))) return;
    this.offset = offset;
    this.later(0);
  }

  by(column) {
    if (this.sort === column && this.descending) this.sort = null;
    else { this.descending = this.sort === column; this.sort = column; }
    this.offset = 0;
    this.later(0);
  }

  later(wait) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.load(), wait);
  }

  // Looks again where a batch has come since, but not too often.
  update(batch) {
    if (this.shown && batch > this.shown.batch && performance.now() >= this.due && !this.loading) this.load();
  }

  async load() {
    if (this.name == null || $("views").hidden) return;
    const asked = [this.name, $("search").value, this.sort, this.descending, this.offset].join("\0");
    const query = new URLSearchParams({ format: "page", limit: LIMIT, offset: this.offset, q: $("search").value });
    if (this.sort != null) query.set("sort", this.sort);
    if (this.descending) query.set("desc", "1");
    const begin = performance.now();
    this.loading = true;
    try {
      const answer = await fetch(`/views/${encodeURIComponent(this.name)}?${query}`);
      const page = answer.ok ? await answer.json() : null, why = answer.ok ? "" : await answer.text();
      this.due = performance.now() + Math.max(LEAST, SHARE * (performance.now() - begin));
      if (page) this.draw(page, asked);
      else { this.shown = { batch: -1, matched: 0 }; setText($("view-about"), why.trim()); }
    } catch {
      this.due = performance.now() + LEAST;
    } finally {
      this.loading = false;
    }
  }

  type(column) {
    return this.known.find(view => view.name === this.name)?.columns[column]?.[1];
  }

  draw(page, asked) {
    const before = this.asked === asked ? this.shown?.data : null;
    this.asked = asked;
    this.shown = page;
    const { matched, offset, data, columns } = page;
    if (!data.length && offset && matched) { this.offset = Math.floor((matched - 1) / LIMIT) * LIMIT; this.later(0); return; }
    const found = $("search").value ? `${count(matched)} of ${count(page.rows)} rows` : `${count(page.rows)} ${page.rows === 1 ? "row" : "rows"}`;
    setText($("view-about"), `${found}, as of batch ${page.batch.toLocaleString("en")}`);
    setText($("range"), matched ? `${(offset + 1).toLocaleString("en")}–${(offset + data.length).toLocaleString("en")}` : "none");
    $("before").disabled = offset === 0;
    $("after").disabled = offset + data.length >= matched;
    const arrow = i => this.sort !== i ? "" : this.descending ? " ↓" : " ↑";
    const focused = document.activeElement?.closest?.("#rows th")?.cellIndex;
    $("rows").replaceChildren(
      el("thead", {}, el("tr", {}, columns.map((column, i) => el("th", { class: column.number ? "number" : "", "aria-sort": this.sort !== i ? "none" : this.descending ? "descending" : "ascending" },
        el("button", { title: `${this.type(i) ?? column.type}; sorts`, onclick: () => this.by(i) }, column.name, arrow(i)))))),
      el("tbody", {}, data.map((row, y) => el("tr", {}, row.map((cell, x) => el("td", {
        class: `${columns[x].number ? "number" : ""}${cell == null ? " null" : ""}${before && before[y] && before[y][x] !== cell ? " changed" : ""}` }, cell ?? "NULL"))))));
    if (focused != null) $("rows").querySelectorAll("th button")[focused]?.focus();
  }
}
