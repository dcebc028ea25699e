// Without a counterfactual: which limits prevent one, what would be found without them, and a button that lifts them.
import { changeLine, dangers } from "./cards.js";
import { targetText } from "./decision.js";
import { h } from "./dom.js";
import { named } from "./fields.js";
import { icon } from "./icons.js";
import { clearAll, limitCount, readableConstraint } from "./limits.js";
import { feature, setTarget, state, notify } from "./state.js";
import { listed, percent, plain, value } from "./format.js";

const cap = (text) => text[0].toUpperCase() + text.slice(1);

// A limit set on this page, as a sentence and as what lifts it.
function ownLimit(one) {
  const frozen = state.frozen.has(one.name);
  return {
    one,
    constraint: frozen ? `${cap(named(one))} is to stay as it is` : `${cap(named(one))} is limited`,
    lift: () => (frozen ? state.frozen.delete(one.name) : delete state.ranges[one.name]),
  };
}

// A blocking constraint of a record: a limit set on this page, or a constraint of the schema.
export function blockedBy({ text, origin, columns }) {
  const one = columns.length === 1 ? feature(columns[0]) : undefined;
  const limited = one && (origin === "permitted_range" ? one.name in state.ranges : origin !== "schema" && state.frozen.has(one.name));
  return limited ? ownLimit(one) : { one: null, constraint: cap(readableConstraint(plain(text).replace(` (${origin})`, ""))) };
}

// The limits of this page that these changes do not keep to.
export function brokenLimits(changes) {
  const outside = (change) => {
    const range = state.ranges[change.feature];
    if (!range) return false;
    return feature(change.feature)?.kind === "numeric" ? change.to < range[0] || change.to > range[1] : !range.includes(change.to);
  };
  return changes.filter((change) => state.frozen.has(change.feature) || outside(change)).map((change) => ownLimit(feature(change.feature)));
}

export function noCounterfactualPanel(record, more, { endanger, tryIt }) {
  if (state.undecided) return h("p", { class: "panel calm" }, icon("hint", 22), h("span", {}, "This service does not know which outcome people want, and does not guess. Choose it above."));
  if (record.status === "already_target") return alreadyPanel(record, endanger, tryIt);
  if (record.status === "none_found" || record.status === "stopped") return infeasiblePanel(record, more);
  return h("p", { class: "panel calm" }, icon("hint", 22), h("span", {}, plain(record.reason ?? "There is no answer.")));
}

// The outcome wanted is there: what would endanger it is shown only to who asks for it.
function alreadyPanel(record, endanger, tryIt) {
  const { danger } = state.answer;
  const button = h("button", { class: "button button-small", type: "button", id: "endanger", "data-keep": "endanger", onclick: endanger }, icon("hint", 15), "Show what would endanger it");
  return [
    h("div", { class: "panel calm" }, icon("yes", 22), h("p", {}, `The decision already is the one wanted: ${targetText(record)}.`), danger ? null : button),
    danger ? h("section", { class: "danger", "aria-labelledby": "danger-heading" }, h("h3", { id: "danger-heading" }, "What would endanger it"), h("p", { class: "section-note" }, "With any of these the decision would be another. They go into no letter."), danger === "looking" ? h("p", { class: "waiting" }, "Evaluating …") : dangers(danger, tryIt)) : null,
  ];
}

function infeasiblePanel(record, more) {
  const { infeasible: why } = record, { looking, free } = state.answer;
  const constraints = why?.blocking.map(blockedBy) ?? [], mine = constraints.length > 0 && constraints.every((one) => one.one);
  if (mine) return box(proof(why), progress(why.progress), inTheWay(constraints, why.unlocked), safer());
  const found = free?.counterfactuals?.[0];
  if (found) return box(proof(why), progress(why?.progress), inTheWay(brokenLimits(found.changes), found.changes), policy(constraints, why), still(looking, "Looking for a smaller way …"), safer());
  if (looking) return box(still(true));
  if (record.status === "stopped") return box(h("p", {}, "The search was stopped before it found an answer."), longer(more, "Look longer"));
  if (!why) return box(h("p", {}, plain(record.reason ?? "Nothing was found.")), longer(more, "Find out what prevents it"));
  return box(proof(why), progress(why.progress), policy(constraints, why), constraints.length ? null : h("p", {}, "Nothing was found even without the limits."), liftAll(), safer());
}

const box = (...children) => h("div", { class: "panel advice", id: "advice" }, h("div", { class: "advice-mark" }, icon("idea", 24)), h("div", { class: "advice-body" }, children));

const still = (looking, words = "Finding out what prevents it …") => (looking ? h("p", { class: "waiting" }, words) : null);

const longer = (more, label) => h("button", { class: "button button-small", type: "button", "data-keep": "longer", onclick: more }, icon("search", 15), label);

const proof = (why) => (why?.proven ? h("p", {}, "There is no way within these limits: every change they permit was evaluated.") : null);

function progress(share) {
  if (share === null || share === undefined || share < 0.01) return null;
  const way = Math.min(Math.max(share, 0), 0.99);
  return h("div", { class: "way" }, h("p", {}, `Within these limits the best try came ${percent(way)} of the way.`),
    h("div", { class: "meter", role: "meter", "aria-label": "How far the best try came", "aria-valuemin": 0, "aria-valuemax": 100, "aria-valuenow": Math.round(100 * way), "aria-valuetext": percent(way) }, h("span", { class: "meter-fill", style: { "--share": `${Math.round(100 * way)}%` } })));
}

// Limits of this page: the button lifts all that prevent a counterfactual.
function inTheWay(constraints, changes) {
  const names = listed(constraints.map((constraint) => named(constraint.one)));
  const lift = () => {
    constraints.forEach((constraint) => constraint.lift());
    notify("limits");
  };
  const button = h("button", { class: "button button-primary", type: "button", "data-keep": "loosen", onclick: lift }, icon("unlock", 16), constraints.length > 2 ? `Allow these ${constraints.length} to change` : `Allow ${names} to change`);
  const lead = !constraints.length ? null : constraints.length === 1 ? "One limit prevents it" : "These limits together prevent it";
  const then = !constraints.length ? "A wider search found this" : constraints.length === 1 ? "Without it, this would do" : "Without them, this would do";
  return h("div", { class: "advice-sides" },
    lead ? h("div", { class: "advice-side" }, h("h3", {}, lead), h("ul", { class: "blockings" }, constraints.map((constraint) => h("li", { class: "blocking" }, icon("lock", 16), h("span", {}, constraint.constraint)))), button) : null,
    h("div", { class: "advice-side" }, h("h3", {}, then), h("ul", { class: "changes" }, changes.map((change) => changeLine(change, null)))));
}

// Rules of the schema: shown, with nothing to press.
function policy(constraints, why) {
  const fixed = constraints.filter((constraint) => !constraint.one);
  if (!fixed.length) return null;
  const then = listed(why.unlocked.map((change) => `${named(feature(change.feature) ?? { name: change.feature })} “${value(feature(change.feature), change.to)}”`));
  return h("p", { class: "advice-more" }, h("span", { class: "tag" }, "set by policy"), ` ${listed(fixed.map((constraint) => constraint.constraint))}. `, then ? `Without that, ${then} would do.` : "");
}

const liftAll = () => (limitCount() ? h("button", { class: "button button-small", type: "button", "data-keep": "lift-mine", onclick: clearAll }, icon("unlock", 15), limitCount() === 1 ? "Lift the limit set here" : `Lift the ${limitCount()} limits set here`) : null);

function safer() {
  return state.safe === null ? null : h("p", { class: "advice-more" }, `It must hold under ${percent(state.safe)} of small differences. `, h("button", { class: "link", type: "button", onclick: () => setTarget({ safe: null }) }, "Do not ask for that"));
}
