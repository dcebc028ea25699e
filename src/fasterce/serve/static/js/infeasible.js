// A no that helps: which limit stands in the way, what would do without it, and a button that lifts it.
import { changeLine } from "./cards.js";
import { wantedWords } from "./decision.js";
import { h } from "./dom.js";
import { named } from "./fields.js";
import { icon } from "./icons.js";
import { clearAll, limitCount, spoken } from "./limits.js";
import { feature, features, setGoal, state, tell } from "./state.js";
import { listed, percent, plain } from "./words.js";

const cap = (text) => text[0].toUpperCase() + text.slice(1);

// A limit set on this page, as a sentence and as what lifts it.
function ours(one) {
  const frozen = state.frozen.has(one.name);
  return {
    one,
    rule: frozen ? `${cap(named(one))} is to stay as it is` : `${cap(named(one))} is limited`,
    lift: () => (frozen ? state.frozen.delete(one.name) : delete state.ranges[one.name]),
  };
}

// "duration may not change", "duration within 1 to 9 (permitted_range)": ours, or a rule of the schema.
export function blockedBy(text) {
  const said = plain(text);
  const frozen = features().find((one) => state.frozen.has(one.name) && said === `${one.name} may not change`);
  if (frozen) return ours(frozen);
  const ranged = features()
    .filter((one) => one.name in state.ranges && said.endsWith("(permitted_range)") && said.startsWith(`${one.name} `))
    .sort((one, other) => other.name.length - one.name.length)[0];
  return ranged ? ours(ranged) : { one: null, rule: cap(spoken(said.replace(/ \((schema|permitted_range|features_to_vary)\)$/, ""))) };
}

// The limits of this page that these changes do not keep to.
export function broken(changes) {
  const outside = (change) => {
    const range = state.ranges[change.feature];
    if (!range) return false;
    return feature(change.feature)?.kind === "numeric" ? change.to < range[0] || change.to > range[1] : !range.includes(change.to);
  };
  return changes.filter((change) => state.frozen.has(change.feature) || outside(change)).map((change) => ours(feature(change.feature)));
}

export function advice(record, more) {
  if (record.status === "already_target") return h("p", { class: "panel calm" }, icon("yes", 22), h("span", {}, `The decision already is ${wantedWords(record)}. Choose another outcome above to see what would change it.`));
  if (record.status === "none_found" || record.status === "stopped") return refusal(record, more);
  return h("p", { class: "panel calm" }, icon("hint", 22), h("span", {}, plain(record.reason ?? "There is no answer.")));
}

function refusal(record, more) {
  const { refusal: why } = record, { looking, free } = state.answer;
  const rules = why?.blocking.map(blockedBy) ?? [], mine = rules.length > 0 && rules.every((one) => one.one);
  if (mine) return box(progress(why.progress), inTheWay(rules, why.unlocked), safer());
  const found = free?.counterfactuals?.[0];
  if (found) return box(progress(why?.progress), inTheWay(broken(found.changes), found.changes), policy(rules, why), still(looking, "Looking for a smaller way …"), safer());
  if (looking) return box(still(true));
  if (record.status === "stopped") return box(h("p", {}, "The search was stopped before it found an answer."), longer(more, "Look longer"));
  if (!why) return box(h("p", {}, plain(record.reason ?? "Nothing was found.")), longer(more, "Find out what stands in the way"));
  return box(progress(why.progress), policy(rules, why), rules.length ? null : h("p", {}, "Nothing was found even without the limits."), liftAll(), safer());
}

const box = (...children) => h("div", { class: "panel advice", id: "advice" }, h("div", { class: "advice-mark" }, icon("idea", 24)), h("div", { class: "advice-body" }, children));

const still = (looking, words = "Finding out what stands in the way …") => (looking ? h("p", { class: "waiting" }, words) : null);

const longer = (more, label) => h("button", { class: "button button-small", type: "button", "data-keep": "longer", onclick: more }, icon("search", 15), label);

function progress(share) {
  if (share === null || share === undefined) return null;
  const way = Math.min(Math.max(share, 0), 0.99);
  return h("div", { class: "way" }, h("p", {}, `Within these limits the best try came ${percent(way)} of the way.`),
    h("div", { class: "meter", role: "meter", "aria-label": "How far the best try came", "aria-valuemin": 0, "aria-valuemax": 100, "aria-valuenow": Math.round(100 * way), "aria-valuetext": percent(way) }, h("span", { class: "meter-fill", style: { "--share": `${Math.round(100 * way)}%` } })));
}

// Limits of this page: the button lifts all that are in the way.
function inTheWay(rules, changes) {
  const names = listed(rules.map((rule) => named(rule.one)));
  const lift = () => {
    rules.forEach((rule) => rule.lift());
    tell("limits");
  };
  const button = h("button", { class: "button button-primary", type: "button", "data-keep": "loosen", onclick: lift }, icon("unlock", 16), rules.length > 2 ? `Allow these ${rules.length} to change` : `Allow ${names} to change`);
  const lead = !rules.length ? null : rules.length === 1 ? "One limit stands in the way" : "These limits stand in the way together";
  const then = !rules.length ? "A wider search found this" : rules.length === 1 ? "Without it, this would do" : "Without them, this would do";
  return h("div", { class: "advice-sides" },
    lead ? h("div", { class: "advice-side" }, h("h3", {}, lead), h("ul", { class: "blockings" }, rules.map((rule) => h("li", { class: "blocking" }, icon("lock", 16), h("span", {}, rule.rule)))), button) : null,
    h("div", { class: "advice-side" }, h("h3", {}, then), h("ul", { class: "changes" }, changes.map((change) => changeLine(change, null)))));
}

// Rules of the schema: advice, and nothing to press.
function policy(rules, why) {
  const fixed = rules.filter((rule) => !rule.one);
  if (!fixed.length) return null;
  const then = listed(why.unlocked.map((change) => `${named(feature(change.feature) ?? { name: change.feature })} ${plain(change.to)}`));
  return h("p", { class: "advice-more" }, h("span", { class: "tag" }, "set by policy"), ` ${listed(fixed.map((rule) => rule.rule))}. `, then ? `Otherwise ${then} would do.` : "");
}

const liftAll = () => (limitCount() ? h("button", { class: "button button-small", type: "button", "data-keep": "lift-mine", onclick: clearAll }, icon("unlock", 15), limitCount() === 1 ? "Lift the limit set here" : `Lift the ${limitCount()} limits set here`) : null);

function safer() {
  return state.safe === null ? null : h("p", { class: "advice-more" }, `It must hold under ${percent(state.safe)} of small differences. `, h("button", { class: "link", type: "button", onclick: () => setGoal({ safe: null }) }, "Do not ask for that"));
}
