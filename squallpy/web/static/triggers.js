// The trigger program in readable maths: Sum_[k](…) is a Σ with its keys below, costs are marks.

import { el, setText } from "./dom.js";
import { cost } from "./plan.js";

const COSTS = [["O(1)", "a lookup by key"], ["O(log n)", "a search"], ["O(slice)", "the records of a key"], ["O(n)", "all of a view"]];

export const costKey = () => COSTS.map(([mark, means]) => el("span", {}, el("span", { class: `cost ${cost(mark)}` }, mark), ` ${means}`));

export function program(text) {
  const rates = new Map();
  const blocks = text.trimEnd().split(/\n\n/).filter(Boolean).map(block => {
    const [head, ...lines] = block.split("\n");
    const relation = /^ON (?:UPDATE|LOAD) (.+) BY Δ/.exec(head)?.[1];
    const rate = el("span", { class: "rate number" });
    if (relation) rates.set(relation, rate);
    return el("article", { class: `card formula ${relation ? "trigger" : ""}` },
      el("h3", {}, title(head), rate), el("div", { class: "lines" }, statements(lines).map(line)));
  });
  return { blocks, rates };
}

export function updateRates(rates, now) {
  for (const [relation, node] of rates) {
    const found = [...now].find(([name]) => name.toUpperCase() === relation);
    setText(node, found ? `${Math.round(found[1]).toLocaleString("en")} tuples/s` : "");
  }
}

const title = head => head.replace(/^ON UPDATE (.+) BY (Δ.+)$/, "on $2").replace(/^ON LOAD (.+) BY (Δ.+)$/, "on load of $2")
  .replace(/^(VIEWS|AUXILIARY|RESULT|PARTS)/, word => word[0] + word.slice(1).toLowerCase());

// Folded lines belong to the one before them: they are indented more.
function statements(lines) {
  const found = [];
  for (const each of lines) {
    const text = each.replace(/^ {2}/, "");
    if (/^ {4}/.test(text) && found.length) found[found.length - 1] += ` ${text.trim()}`;
    else found.push(text);
  }
  return found;
}

function line(text) {
  const priced = /^(.*?)\s+\[(O\([^)]*\))\]$/s.exec(text);
  const formula = (priced ? priced[1] : text).replace(/ {2,}/g, " ");
  return el("p", { class: "statement" }, el("code", {}, maths(formula)),
    priced ? el("span", { class: `cost ${cost(priced[2])}` }, priced[2]) : null);
}

// Sum_[a, b](x)  →  Σ with a, b below
function maths(formula) {
  const parts = [];
  for (const part of formula.split(/(Sum_\[[^\]]*\]|Δ[\p{L}\w.′]+|:=|\+=|⋈|⟨|⟩)/u)) {
    const sum = /^Sum_\[([^\]]*)\]$/.exec(part);
    if (sum) parts.push(el("span", { class: "sum" }, "Σ", sum[1] ? el("sub", {}, sum[1]) : null));
    else if (part.startsWith("Δ")) parts.push(el("b", { class: "delta" }, part));
    else if (/^(:=|\+=|⋈|⟨|⟩)$/.test(part)) parts.push(el("span", { class: "sign" }, part));
    else if (part) parts.push(part);
  }
  return parts;
}
