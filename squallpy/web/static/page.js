// The page: its state, the stream of reports, tabs, keys. Each part draws itself in a module of its own.

import { Chart } from "./charts.js";
import { $, bytes, clock, count, el, seconds, setText } from "./dom.js";
import { drawJoins } from "./joins.js";
import { PlanPicture } from "./plan.js";
import { costKey, program, updateRates } from "./triggers.js";
import { Views } from "./views.js";

const TABS = [["overview", "Overview"], ["plan", "Plan"], ["triggers", "Triggers"], ["views", "Views"], ["joins", "Joins"], ["events", "Events"], ["settings", "Settings"]];
const WINDOWS = [[60, "1 min"], [300, "5 min"], [900, "15 min"]];
const KEPT = 900, RECENT = 5;  // seconds
const LEFT_OUT = { skipped: "could not be read", unmatched: "deletes of rows not there", duplicate: "break a PRIMARY KEY", duplicates: "break a PRIMARY KEY", late: "came after their window" };

const data = { seconds: new Map(), events: new Map(), rows: new Map(), report: null, catalogue: null, span: 60, offset: 0 };
const picture = new PlanPicture(), views = new Views();
let formulas = new Map(), drawn = 0;

// what comes

function take(report) {
  for (const each of report.seconds) data.seconds.set(each.at, each);
  for (const each of report.events) data.events.set(`${each.at} ${each.event} ${JSON.stringify(each.fields)}`, each);
  for (const each of report.rows) data.rows.set(`${each.at} ${each.row}`, each);
  for (const at of data.seconds.keys()) if (at < report.now - KEPT) data.seconds.delete(at);
  for (const kept of [data.events, data.rows]) while (kept.size > 300) kept.delete(kept.keys().next().value);
  data.report = report;
  data.offset = report.now - Date.now() / 1000;
  if (data.isNew || report.edition !== data.catalogue?.edition) read();
  data.isNew = false;
  head();
  if (Date.now() - drawn > 900) draw();
}

async function read() {
  if (data.reading) return;
  data.reading = true;
  try {
    const answer = await fetch("/catalogue");
    if (answer.ok) catalogue(await answer.json());
  } finally {
    data.reading = false;
  }
}

function catalogue(found) {
  data.catalogue = found;
  setText($("name"), found.name);
  document.title = `${found.name} · squall`;
  picture.show(found.graph);
  const made = program(found.triggers);
  formulas = made.rates;
  $("program").replaceChildren(...(made.blocks.length ? made.blocks : [el("p", { class: "empty" }, "No view is kept fresh yet.")]));
  const named = found.graph.nodes.filter(node => node.kind === "result" && node.name !== node.pool);
  setText($("results"), named.map(node => `${node.pool} is ${node.name}`).join(", "));
  views.list(found.views);
  settings(found);
  draw();
}

function listen() {
  const stream = new EventSource("/events");
  stream.addEventListener("report", event => { data.lost = data.ended = false; take(JSON.parse(event.data)); });
  stream.addEventListener("end", () => { data.ended = true; });
  stream.onopen = () => { data.isNew = true; };  // it may be another process by now
  stream.onerror = () => {
    data.lost = true;
    head();
    if (stream.readyState === EventSource.CLOSED) setTimeout(listen, 10_000);
  };
}

// figures

const records = () => [...data.seconds.values()].sort((a, b) => a.at - b.at);
const now = () => Date.now() / 1000 + data.offset;
const samples = name => data.report?.values[name] ?? [];
const sum = name => samples(name).reduce((total, [, value]) => total + value, 0);

function recent(of) {
  const from = now() - RECENT - 1, some = records().filter(each => each.at > from && each.at < Math.floor(now()));
  return some.reduce((total, each) => total + (of(each) ?? 0), 0) / RECENT;
}

function rates() {
  const names = new Set([...samples("rows_read_total").map(([labels]) => labels.source), ...(data.catalogue?.graph.nodes ?? []).filter(node => node.kind === "stream").map(node => node.name)]);
  return new Map([...names].map(name => [name, recent(each => each.read[name])]));
}

function state() {
  const found = new Map();
  for (const [what, name] of [["bytes", "state_bytes"], ["records", "state_records"]]) {
    for (const [{ view }, value] of samples(name)) {
      const pool = view.replace(/^(other|changes|reached) /, ""), held = found.get(pool) ?? { bytes: 0, records: 0 };  // of joiners
      held[what] += value;
      found.set(pool, held);
    }
  }
  return found;
}

const last = name => records().map(each => each[name]).filter(value => value != null).at(-1);

// drawing

function head() {
  const report = data.report, is = report?.trouble ? "failed" : data.lost ? data.ended ? "ended" : "lost" : report?.state ?? "running";
  const words = { lost: "no connection; it goes on when squall does", failed: "failed", running: quiet() ? "up to date" : "running" };
  $("state").dataset.state = is === "running" && quiet() ? "idle" : is;
  setText($("state-text"), words[is] ?? is);
  if (!report) return;
  setText($("batch"), report.batch < 0 ? "–" : report.batch.toLocaleString("en"));
  $("trouble").hidden = !report.trouble;
  setText($("trouble"), report.trouble);
}

const quiet = () => !records().some(each => each.at > now() - 3 && each.batches);

const TILES = [
  ["tuples/s", () => count(recent(each => each.tuples)), "tuples"], ["batches/s", () => count(recent(each => each.batches)), "batches"],
  ["batch, p95", () => seconds(last("p95")), "p95"], ["unread rows", () => count(last("lag_rows")), "lag_rows"],
  ["state", () => bytes(samples("state_bytes").length ? sum("state_bytes") : null), "state_bytes"], ["left out", () => count(sum("rows_left_out_total")), "left_out"],
];
const tiles = TILES.map(([name]) => ({ value: el("b", { class: "number" }), name }));
$("tiles").replaceChildren(...tiles.map(({ name, value }) => el("div", { class: "tile card" }, el("span", {}, name), value)));

const charts = [
  new Chart({ title: "Latency of a batch", format: seconds, series: [{ name: "p95", of: r => r.p95 }, { name: "median", of: r => r.p50 }, { name: "max", of: r => r.max }] }),
  new Chart({ title: "Tuples per second", format: count, series: [{ name: "read", of: r => r.tuples }, { name: "changed", of: r => r.changed }] }),
  new Chart({ title: "Lag", format: count, series: [{ name: "unread rows", of: r => r.lag_rows ?? undefined }] }),
  new Chart({ title: "State", format: bytes, series: [{ name: "bytes", of: r => r.state_bytes ?? undefined }] }),
];
$("charts").replaceChildren(...charts.map(chart => chart.node));
$("windows").replaceChildren(...WINDOWS.map(([span, name]) => el("button", { "aria-pressed": span === data.span, onclick: event => {
  data.span = span;
  for (const each of $("windows").children) each.setAttribute("aria-pressed", each === event.target);
  draw();
} }, name)));
$("cost-key").replaceChildren(...costKey());

function draw() {
  if (!data.report) return;
  drawn = Date.now();
  const shown = tab();
  if (shown === "overview") {
    tiles.forEach(({ value }, i) => setText(value, TILES[i][1]()));
    for (const chart of charts) chart.draw(records(), now(), data.span);
  }
  if (shown === "plan") picture.update(rates(), state());
  if (shown === "triggers") updateRates(formulas, rates());
  if (shown === "views" && !data.report.trouble) views.update(data.report.batch);
  if (shown === "joins") drawJoins(data.report, data.catalogue, records(), now(), data.span);
  if (shown === "events") events();
  setText($("tab-events").querySelector(".mark"), sum("rows_left_out_total") || data.report.trouble ? "●" : "");
}

function events() {
  const key = `${data.events.size} ${data.rows.size} ${sum("rows_left_out_total")} ${[...data.events.keys()].at(-1)} ${[...data.rows.keys()].at(-1)}`;
  if (key === data.eventsShown) return;  // or what somebody has marked would be marked no more
  data.eventsShown = key;
  const left = samples("rows_left_out_total").map(([{ reason }, value]) => el("div", { class: `tile card ${value ? "some" : ""}` },
    el("span", {}, reason), el("b", { class: "number" }, count(value)), el("span", { class: "quiet" }, LEFT_OUT[reason] ?? "")));
  $("left-out").replaceChildren(...left);
  const rows = [...data.rows.values()].reverse();
  $("left-rows").replaceChildren(...(rows.length ? [el("div", { class: "scroll" }, el("table", {}, heads("batch", "stream", "why", "row"), el("tbody", {},
    rows.map(each => el("tr", {}, cells(each.batch, each.stream, each.why), el("td", {}, el("code", {}, each.row)))))))] : []));
  const found = [...data.events.values()].reverse();
  $("event-rows").replaceChildren(heads("time", "level", "event", ""), el("tbody", {}, found.map(each => el("tr", { class: each.level },
    cells(clock(each.at), each.level, each.event), el("td", {}, Object.entries(each.fields).map(([name, value]) => `${name} ${typeof value === "object" ? JSON.stringify(value) : value}`).join(", "))))));
  if (!found.length) $("event-rows").replaceChildren(el("caption", { class: "empty" }, "nothing so far"));
}

const heads = (...names) => el("thead", {}, el("tr", {}, names.map(name => el("th", {}, name))));
const cells = (...values) => values.map(value => el("td", {}, value));

function settings(found) {
  const about = { version: found.version, partitions: found.partitions, ...found.about };
  $("about").replaceChildren(...Object.entries(about).flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, String(value))]));
  $("entries").replaceChildren(heads("name", "kind", "format", "columns or query"), el("tbody", {}, found.entries.map(each => el("tr", {},
    cells(each.name, each.kind, each.format ?? ""), el("td", {}, each.columns ? each.columns.map(([name, type]) => `${name} ${type}`).join(", ") : el("code", {}, each.query ?? ""))))));
  const ordered = [...found.settings].sort((a, b) => (a.value === a.default) - (b.value === b.default));
  $("setting-rows").replaceChildren(heads("name", "value", "default", "meaning"), el("tbody", {}, ordered.map(each =>
    el("tr", { class: each.value === each.default ? "" : "set" }, cells(each.name, each.value, each.value === each.default ? "" : each.default, each.meaning)))));
}

// tabs, keys, theme

const tab = () => TABS.some(([id]) => `#${id}` === location.hash) ? location.hash.slice(1) : "overview";

$("tabs").replaceChildren(...TABS.map(([id, name], i) => el("a", { id: `tab-${id}`, role: "tab", href: `#${id}`, "aria-controls": id, title: `${i + 1}` }, name, el("span", { class: "mark" }))));

function show() {
  for (const [id] of TABS) {
    $(id).hidden = id !== tab();
    $(`tab-${id}`).setAttribute("aria-selected", id === tab());
  }
  $(`tab-${tab()}`).scrollIntoView({ block: "nearest", inline: "nearest" });
  if (tab() === "views") views.load();
  draw();
}

function theme(chosen) {
  document.documentElement.dataset.theme = chosen;
  localStorage.setItem("theme", chosen);
}

const isDark = () => (document.documentElement.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
const KEYS = {
  "1 – 7": "parts of the page", "/": "search in the view", "n  p": "next page, page before", "j  k": "next view, view before",
  t: "dark or light", "?": "these keys", Esc: "leave a search or this list",
};
$("keys").replaceChildren(el("h2", {}, "Keys"), el("dl", {}, Object.entries(KEYS).flatMap(([key, means]) => [el("dt", {}, el("kbd", {}, key)), el("dd", {}, means)])),
  el("form", { method: "dialog" }, el("button", {}, "close")));

const ACTIONS = {
  "/": () => { location.hash = "views"; setTimeout(() => $("search").focus()); }, n: () => views.turn(1), p: () => views.turn(-1),
  j: () => views.move(1), k: () => views.move(-1), t: () => theme(isDark() ? "light" : "dark"), "?": () => $("keys").showModal(),
};

addEventListener("keydown", event => {
  if (event.key === "Escape" && event.target === $("search")) { $("search").value = ""; $("search").dispatchEvent(new Event("input")); $("search").blur(); }
  if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName) || $("keys").open) return;
  const action = /^[1-7]$/.test(event.key) ? () => { location.hash = TABS[event.key - 1][0]; } : ACTIONS[event.key];
  if (action) { event.preventDefault(); action(); }
});
$("theme").addEventListener("click", ACTIONS.t);
$("help").addEventListener("click", ACTIONS["?"]);
addEventListener("hashchange", show);

if (localStorage.getItem("theme")) theme(localStorage.getItem("theme"));
show();
listen();
setInterval(() => { head(); if (!document.hidden) draw(); }, 1000);
