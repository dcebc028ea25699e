// A no that helps: which rule stands in the way, what would do without it, and a button that lifts it.
import { changeLine } from "./cards.js";
import { wantedWords } from "./decision.js";
import { h } from "./dom.js";
import { named } from "./fields.js";
import { icon } from "./icons.js";
import { clearAll, limitCount, spoken } from "./limits.js";
import { features, freeze, setGoal, setRange, state, tell } from "./state.js";
import { percent, plain } from "./words.js";

// "duration may not change", "duration within 1 to 9 (permitted_range)" -> what would lift it from here, if anything can.
export function loosening(text) {
  const said = plain(text);
  const frozen = features().find((one) => state.frozen.has(one.name) && said === `${one.name} may not change`);
  if (frozen) return { label: `Allow ${named(frozen)} to change`, rule: `${cap(named(frozen))} is to stay as it is`, lift: () => state.frozen.delete(frozen.name), told: () => freeze(frozen.name, false) };
  if (said.endsWith("(permitted_range)")) {
    const ranged = features()
      .filter((one) => one.name in state.ranges && said.startsWith(`${one.name} `))
      .sort((one, other) => String(other.name).length - String(one.name).length)[0];
    if (ranged) return { label: `Allow any ${named(ranged)}`, rule: `${cap(named(ranged))} is limited`, lift: () => delete state.ranges[ranged.name], told: () => setRange(ranged.name, null) };
  }
  return { label: null, rule: cap(spoken(said.replace(/ \((schema|permitted_range|features_to_vary)\)$/, ""))), policy: true };
}

const cap = (text) => text[0].toUpperCase() + text.slice(1);

export function advice(record, looking, more) {
  if (record.status === "already_target") return h("p", { class: "panel calm" }, icon("yes", 22), h("span", {}, `The decision already is ${wantedWords(record)}. Choose another outcome above to see what would change it.`));
  if (record.status === "none_found" || record.status === "stopped") return refusal(record, looking, more);
  return h("p", { class: "panel calm" }, icon("hint", 22), h("span", {}, plain(record.reason ?? "There is no answer.")));
}

function refusal(record, looking, more) {
  const { refusal: why } = record;
  if (looking) return box(h("p", { class: "waiting" }, "Finding out what stands in the way …"));
  if (record.status === "stopped") return box(h("p", {}, "The search was stopped before it found an answer."), longer(more, "Look longer"));
  if (!why) return box(h("p", {}, plain(record.reason ?? "Nothing was found.")), longer(more, "Find out what stands in the way"));
  return box(progress(why.progress), why.blocking.length ? inTheWay(why) : h("p", {}, nothing(why)), safer());
}

const longer = (more, label) => h("button", { class: "button button-small", type: "button", "data-keep": "longer", onclick: more }, icon("search", 15), label);

const nothing = (why) => (why.unlocked.length ? "A wider search found a way that keeps to the rules:" : why.ruled ? "Nothing was found even without the limits." : "Nothing was found.");

const box = (...children) => h("div", { class: "panel advice", id: "advice" }, h("div", { class: "advice-mark" }, icon("idea", 24)), h("div", { class: "advice-body" }, children));

function progress(share) {
  if (share === null || share === undefined) return null;
  const way = Math.min(Math.max(share, 0), 0.99);
  return h("div", { class: "way" }, h("p", {}, `The best try came ${percent(way)} of the way.`),
    h("div", { class: "meter", role: "meter", "aria-label": "How far the best try came", "aria-valuemin": 0, "aria-valuemax": 100, "aria-valuenow": Math.round(100 * way), "aria-valuetext": percent(way) }, h("span", { class: "meter-fill", style: { "--share": `${Math.round(100 * way)}%` } })));
}

function inTheWay(why) {
  const rules = why.blocking.map(loosening), mine = rules.filter((one) => one.label);
  const lines = rules.map((one, k) =>
    h("li", { class: "blocking" }, icon("lock", 16), h("span", { class: "blocking-rule" }, one.rule),
      one.label && rules.length === 1 ? h("button", { class: "button button-primary button-small", type: "button", "data-keep": `loosen-${k}`, onclick: one.told }, icon("unlock", 15), one.label) : null,
      one.policy ? h("span", { class: "tag" }, "set by policy") : null));
  const all = () => {
    mine.forEach((one) => one.lift());
    tell("limits");
  };
  return [
    h("p", { class: "advice-lead" }, rules.length === 1 ? "One limit stands in the way:" : "These stand in the way together:"),
    h("ul", { class: "blockings" }, lines),
    rules.length > 1 && mine.length === rules.length ? h("button", { class: "button button-primary button-small", type: "button", "data-keep": "loosen-all", onclick: all }, icon("unlock", 15), `Allow ${rules.length === 2 ? "both" : `all ${rules.length}`} to change`) : null,
    why.unlocked.length ? h("p", { class: "advice-lead" }, "Without it, this would do:".replace("it", rules.length === 1 ? "it" : "them")) : null,
    h("ul", { class: "changes" }, why.unlocked.map((change) => changeLine(change, null))),
    !mine.length && limitCount() ? h("button", { class: "button button-small", type: "button", "data-keep": "lift-mine", onclick: clearAll }, icon("unlock", 15), `Lift ${limitCount() === 1 ? "the limit" : `the ${limitCount()} limits`} set here`) : null,
  ];
}

function safer() {
  return state.safe === null ? null : h("p", { class: "advice-more" }, `It must hold under ${percent(state.safe)} of small differences. `, h("button", { class: "link", type: "button", onclick: () => setGoal({ safe: null }) }, "Do not ask for that"));
}

