// Joins on several partitions: the mapping of each grid, the load of joiners, migrations.

import { Chart } from "./charts.js";
import { $, clock, count, el } from "./dom.js";

const HOT = 1.5;  // times the mean
let chart = null, shownKey = "";

export function drawJoins(report, catalogue, records, now, span) {
  const join = report.join, parts = [], key = JSON.stringify([join, report.received, report.mappings, catalogue?.partitions]);
  chart?.draw(records, now, span);
  if (key === shownKey) return;
  shownKey = key;
  if ((catalogue?.partitions ?? 1) <= 1 && !join.mapping) {
    parts.push(el("p", { class: "empty" }, "All state is in one partition: no rows are sent, and there is nothing to balance. ",
      "On Spark the mapping of joiners and their load are here."));
  }
  if (join.mapping) {
    const groups = Array.isArray(join.mapping[0]) ? join.mapping : [join.mapping];
    parts.push(el("div", { class: "grids" }, groups.map(([n, m]) => el("div", { class: "card" },
      el("h3", {}, `mapping (${n}, ${m})`), grid(n, m), el("p", { class: "quiet" }, `${n} rows by ${m} columns: ${n * m} joiners`))),
    el("dl", { class: "card facts" }, facts(join))));
    chart ??= new Chart({ title: "Load of a joiner", format: count, series: [{ name: "tuples", of: r => r.load == null ? undefined : Math.round(r.load) }] });
    parts.push(chart.node);
    chart.draw(records, now, span);
  }
  for (const [stage, rows] of Object.entries(report.received)) parts.push(bars(stage, rows));
  if (report.mappings.length) {
    parts.push(el("h2", {}, "Migrations"), el("div", { class: "scroll" }, el("table", {}, el("thead", {}, el("tr", {}, ["time", "batch", "epoch", "mapping"].map(name => el("th", {}, name)))),
      el("tbody", {}, [...report.mappings].reverse().map(each => el("tr", {}, [clock(each.at), each.batch, each.epoch ?? "", shown(each.mapping)].map(value => el("td", {}, value))))))));
  }
  $("join-body").replaceChildren(...parts);
}

const shown = mapping => Array.isArray(mapping[0]) ? mapping.map(each => `(${each.join(", ")})`).join(" ") : `(${mapping.join(", ")})`;

function facts(join) {
  const found = {
    "tuples of a joiner": join.ilf == null ? null : count(Math.round(join.ilf)), "bytes by those of the best mapping": join.ilf_ratio?.toFixed(2), "busiest by the mean": join.busiest?.toFixed(2),
    migrations: join.epoch, "migration under way": join.migrated == null ? "none" : `${Math.round(100 * join.migrated)} %`, "tuples copied": join.copied == null ? null : count(join.copied),
    "heavy keys": join.heavy_keys,
  };
  return Object.entries(found).filter(([, value]) => value != null && value !== "–").flatMap(([name, value]) => [el("dt", {}, name), el("dd", { class: "number" }, value)]);
}

function grid(n, m) {
  const cells = Array.from({ length: Math.min(n, 32) * Math.min(m, 32) }, () => el("i"));
  const node = el("div", { class: "grid-cells", role: "img", "aria-label": `${n} rows by ${m} columns of joiners` }, cells);
  node.style.setProperty("grid-template-columns", `repeat(${Math.min(m, 32)}, 1fr)`);
  return node;
}

// Rows that each partition was sent; those with much more than the mean are hot.
function bars(stage, rows) {
  const values = Object.entries(rows).sort(([a], [b]) => a - b), all = values.map(([, value]) => value);
  const most = Math.max(...all), mean = all.reduce((a, b) => a + b, 0) / all.length;
  return el("div", { class: "card" }, el("h3", {}, `rows sent to partitions, stage ${Number(stage) + 1}`), el("div", { class: "bars" }, values.map(([partition, value]) => {
    const bar = el("i", { class: value > HOT * mean ? "hot" : "" });
    bar.style.setProperty("width", `${100 * value / most}%`);
    return el("p", {}, el("span", { class: "number" }, partition), bar, el("span", { class: "number" }, `${count(value)}${value > HOT * mean ? " · hot" : ""}`));
  })));
}
