// The alternatives side by side: what would change from what to what, and what each is worth.
import { find, h, replace } from "./dom.js";
import { targetText } from "./decision.js";
import { chanceOf } from "./gauge.js";
import { icon } from "./icons.js";
import { lockButton } from "./limits.js";
import { changesOf, choose, feature, features, lockAllBut, mayChange, setTarget, state } from "./state.js";
import { amount, ARROW, bare, count, difference, effort, inline, labelOf, LETTERS, METHODS, outcome, percent, plain, readable, realism, robustness, value } from "./format.js";

const nameOf = (name) => {
  const known = feature(name);
  return known ? labelOf(known) : readable(name);
};

// One line "Duration  24 → 7  −17"; a lock where the feature may be frozen from here.
export function changeLine(change, lockKey) {
  const known = feature(change.feature);
  const by = difference(known, change.from, change.to);
  return h("li", { class: change.against ? "change is-against" : "change" },
    h("span", { class: "change-name" }, nameOf(change.feature)),
    h("span", { class: "change-values" },
      h("span", { class: "visually-hidden" }, "from "), h("span", { class: "was" }, bare(known, change.from)),
      h("span", { class: "becomes", "aria-hidden": "true" }, ARROW), h("span", { class: "visually-hidden" }, " to "),
      h("strong", { class: "now" }, value(known, change.to)),
      by ? h("span", { class: "by" }, by) : null,
      change.against ? h("span", { class: "tag tag-warn" }, "not in the person’s interest") : null),
    lockKey && known ? lockButton(known, lockKey, true) : null);
}

function meter(name, said, valueText) {
  const shown = said ?? { word: "Not measured", text: valueText, share: 0 };
  const bar = said
    ? h("div", { class: "meter", role: "meter", "aria-label": name, "aria-valuemin": 0, "aria-valuemax": 100, "aria-valuenow": Math.round(100 * shown.share), "aria-valuetext": `${shown.word}: ${shown.text}` }, h("span", { class: "meter-fill", style: { "--share": `${Math.round(100 * shown.share)}%` } }))
    : null;
  return h("div", { class: said ? "measure" : "measure is-unknown" }, h("div", { class: "measure-head" }, h("span", { class: "measure-name" }, name), h("span", { class: "measure-word" }, shown.word)), bar, h("p", { class: "measure-text" }, shown.text));
}

function outcomeOf(one, record) {
  const chance = chanceOf(one.score, one.prediction);
  const named = outcome(state.schema, one.prediction);
  if (one.score?.kind === "number") return `Predicted ${amount(one.score.value)}`;
  return chance === null ? named : `${named} · ${percent(chance)}`;
}

// Two kinds of answer that change the same make one card with both names.
export function distinct(record) {
  const known = new Map();
  for (const one of record.counterfactuals) {
    const change = JSON.stringify(one.changes), first = known.get(change);
    if (first) first.methods.push(one.method);
    else known.set(change, { ...one, methods: [one.method] });
  }
  return [...known.values()];
}

const titleOf = (one) => [...new Set(one.methods)].map((name, k) => (k ? inline : String)(METHODS[name]?.title ?? readable(name))).join(", ");

// Whether an alternative goes into the letter.
function inLetter(one, letter) {
  const box = h("input", { type: "checkbox", "data-keep": `letter-${letter}`, checked: !state.left.has(changesOf(one)), onchange: () => choose(one, box.checked) });
  return h("label", { class: "in-letter" }, box, "In the letter", h("span", { class: "visually-hidden" }, `: alternative ${letter}`));
}

const onlyThese = (one) => () => lockAllBut(one.changes.map((change) => change.feature));

function card(one, k, record, tryIt, danger = false) {
  const wanted = targetText(record), letter = LETTERS[k] ?? String(k + 1);
  const robust = robustness(one.robust), cost = effort(one.distance, state.schema.efforts);
  const same = features().length - one.n_changed;
  const heading = danger ? `danger-${k}` : `card-${k}`;
  const changed = new Set(one.changes.map((change) => JSON.stringify(change.feature)));
  const kept = features().filter((each) => !changed.has(JSON.stringify(each.name)));
  return h("li", { class: danger ? "card card-danger" : "card" },
    h("article", { "aria-labelledby": heading },
      h("header", { class: "card-head" },
        h("span", { class: "badge", "aria-hidden": "true" }, letter),
        h("div", {}, h("h3", { id: heading }, h("span", { class: "visually-hidden" }, `Alternative ${letter}: `), titleOf(one)), h("p", { class: "card-sub" }, count(one.n_changed, "change"))),
        danger || !state.schema.records?.kept ? null : inLetter(one, letter)),
      h("ul", { class: "changes" }, one.changes.map((change) => changeLine(change, danger ? null : `card-lock-${k}-${change.feature}`))),
      h("div", { class: "verdict" }, h("p", { class: "then" }, icon(danger ? "hint" : "yes", 18), h("span", { class: "visually-hidden" }, "Then the decision is "), h("strong", {}, outcomeOf(one, record))),
      h("div", { class: "measures" },
        meter("Effort", cost),
        meter("Realism", realism(one.nn_ratio, wanted), "choose “Compare” to measure it"),
        meter("Robustness", robust, "choose how safe it must be to measure it"))),
      robust && !robust.sure && !danger ? unsure(k, robust.word) : null,
      h("div", { class: "card-foot" },
        danger || one.changes.length === features().filter(mayChange).length - state.frozen.size ? null : h("button", { class: "button button-small", type: "button", "data-keep": `only-${k}`, "aria-label": `Only these may change, as in alternative ${letter}`, onclick: onlyThese(one) }, icon("lock", 14), "Only these may change"),
        h("button", { class: "button button-small", type: "button", "data-keep": `try-${k}`, "aria-label": `Try this: alternative ${letter}`, onclick: () => tryIt(one) }, icon("try", 14), "Try this"),
        h("details", { class: "same" }, h("summary", {}, `${same} stay the same`), h("dl", {}, kept.map((each) => h("div", {}, h("dt", {}, labelOf(each)), h("dd", {}, value(each, state.values[each.name])))))))));
}

function unsure(k, word) {
  return h("p", { class: "hint" }, icon("hint", 16), h("span", {}, h("strong", {}, `${word}. `), "Small differences in the details could undo this. "),
    h("button", { class: "link", type: "button", "data-keep": `safer-${k}`, onclick: () => setTarget({ safe: 0.95 }) }, "Ask for 95 %"));
}

// What would take the wanted outcome away: shown on request, never sent.
export function dangers(record, tryIt) {
  const found = distinct(record);
  if (!found.length) return h("p", { class: "remark" }, "No change was found that would endanger it.");
  return h("ul", { class: "cards" }, found.map((one, k) => card(one, k, record, tryIt, true)));
}

export function showAlternatives(tryIt, noCounterfactualPanel) {
  const { record, ms } = state.answer;
  const found = state.undecided ? [] : distinct(record);
  const head = h("div", { class: "section-head" },
    h("h2", { id: "alternatives-heading", tabindex: -1 }, title(record)),
    found.length ? h("p", { class: "section-note" }, `${count(found.length, "alternative")}, each confirmed by the model`) : null);
  const body = found.length ? [h("ul", { class: "cards" }, found.map((one, k) => card(one, k, record, tryIt))), remark(record)] : noCounterfactualPanel(record);
  const section = find("alternatives"), within = section.contains(document.activeElement);
  replace(section, head, body);
  // Whoever pressed a button that is gone is at the heading, not at the top of the page.
  if (within && !section.contains(document.activeElement)) find("alternatives-heading").focus({ preventScroll: true });
  section.dataset.ms = String(Math.round(ms));
}

function title(record) {
  if (state.undecided) return "Which outcome is wanted?";
  if (record.counterfactuals.length) return "What would have had to be different";
  if (record.status === "already_target") return "Nothing has to change";
  return record.status === "none_found" || record.status === "stopped" ? "Not within these limits" : "No alternatives";
}

const remark = (record) => (record.reason ? h("p", { class: "remark" }, plain(record.reason)) : null);
