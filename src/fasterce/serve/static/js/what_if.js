// What if: change some values and see the decision for them beside the present one.
import * as api from "./api.js";
import { LatestRequest } from "./latest_request.js";
import { find, fresh, h, replace } from "./dom.js";
import { editor, named, outOfRange } from "./fields.js";
import { gauge, reading } from "./gauge.js";
import { icon } from "./icons.js";
import { announce, showError, clearNotice } from "./notices.js";
import { feature, features, on, explainBody, reach, state } from "./state.js";
import { bare, labelOf, outcome, value } from "./format.js";

let editors = new Map();
const explaining = new LatestRequest(
  (signal) => api.explain(explainBody(state.whatif.values, { method: "closest", n: 1, robust: null, freeze: [], ranges: {} }), signal),
  (answer) => {
    clearNotice();
    if (!state.whatif) return;
    state.whatif.record = answer.records[0];
    showOutcomes();
    const { record } = state.whatif;
    announce(record.outcome.prediction === null ? "What if: no answer" : `What if: the decision would be ${outcome(state.schema, record.outcome.prediction)}`);
  },
  (problem) => {
    const fields = problem.fields?.map((one) => api.fieldOf(one.field)).filter((one) => one.part === "rows" && editors.has(one.name)) ?? [];
    fields.forEach((one, k) => editors.get(one.name).fault(problem.fields[k].message));
    if (!fields.length) showError(problem, () => explaining.request());
  },
);

export function open(changes) {
  state.whatif = { values: { ...state.values }, record: null, names: [] };
  for (const change of changes) {
    state.whatif.values[change.feature] = change.to;
    state.whatif.names.push(change.feature);
  }
  draw();
  explaining.cancel();
  explaining.request();
  const section = find("whatif");
  section.scrollIntoView({ block: "nearest", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
  (changes.length ? find("whatif-heading") : section.querySelector("select")).focus({ preventScroll: true });
}

export function close() {
  explaining.cancel();
  state.whatif = null;
  editors = new Map();
  find("whatif").hidden = true;
}

function draw() {
  const { names, values } = state.whatif;
  editors = new Map(names.map((name) => [name, editor(feature(name), (given) => edit(name, given), { keep: `whatif-${name}`, within: ends(name) })]));
  const rows = names.map((name) => {
    const one = editors.get(name);
    one.show(values[name]);
    one.note(outOfReach(name, values[name]));
    const was = h("p", { class: "whatif-was" }, "now ", h("span", {}, value(feature(name), state.values[name])));
    const undo = h("button", { class: "lock", type: "button", "aria-label": `Leave ${named(feature(name))} as it is`, title: "Leave as it is", onclick: () => remove(name) }, icon("cross", 15));
    return h("li", { class: "whatif-row" }, one.element, was, undo);
  });
  const section = find("whatif");
  section.hidden = false;
  replace(section,
    h("div", { class: "section-head" }, h("h2", { id: "whatif-heading", tabindex: -1 }, "What if"), h("button", { class: "lock", type: "button", "aria-label": "Close what if", title: "Close", onclick: () => { close(); find("start-whatif")?.focus(); } }, icon("cross", 18))),
    h("div", { class: "whatif-body" }, h("div", { class: "whatif-edit" }, h("ul", { class: "whatif-rows" }, rows), adder()), h("div", { class: "whatif-outcomes", id: "whatif-outcomes" })));
  showOutcomes();
}

function adder() {
  const id = fresh("also");
  const rest = features().filter((one) => !state.whatif.names.includes(one.name));
  const input = h("select", { class: "select", id, "data-keep": "whatif-add" }, h("option", { value: "" }, state.whatif.names.length ? "Also change …" : "Change …"), rest.map((one, k) => h("option", { value: String(k) }, labelOf(one))));
  input.addEventListener("change", () => {
    if (input.value === "") return;
    const one = rest[Number(input.value)];
    state.whatif.names.push(one.name);
    draw();
    editors.get(one.name).input.focus();
  });
  return h("div", { class: "whatif-add" }, h("label", { class: "visually-hidden", for: id }, "Change another detail"), h("div", { class: "select-control" }, input, icon("down", 16)));
}

// The slider ends where the schema lets the value go; what is typed beyond is shown, and said to be no proposal.
const ends = (name) => (feature(name).kind === "numeric" ? reach(feature(name), state.values[name]) : null) ?? undefined;

function outOfReach(name, given) {
  const one = feature(name);
  if (one.change === "never" && given !== state.values[name]) return "This is fixed by policy and will never be proposed.";
  if (one.kind !== "numeric" || typeof given !== "number") return null;
  const [low, high] = ends(name);
  return given >= low && given <= high ? null : `Only ${bare(one, low)} to ${value(one, high)} can be proposed for this person.`;
}

function edit(name, given) {
  const wrong = given === undefined ? "A number is needed here." : outOfRange(feature(name), given);
  editors.get(name).fault(wrong);
  if (wrong) return;
  editors.get(name).note(outOfReach(name, given));
  state.whatif.values[name] = given;
  explaining.request();
}

function remove(name) {
  state.whatif.values[name] = state.values[name];
  state.whatif.names = state.whatif.names.filter((one) => one !== name);
  draw();
  find("whatif-heading").focus();
  explaining.request();
}

function showOutcomes() {
  const place = find("whatif-outcomes");
  if (!place || !state.whatif) return;
  const side = (title, record, id) => {
    if (!record) return h("div", { class: "side-outcome", id }, h("p", { class: "eyebrow" }, title), h("p", { class: "waiting" }, "Evaluating …"));
    const read = reading({ ...record, counterfactuals: [] }, state.schema);
    const said = record.outcome.prediction === null ? "Not answered" : outcome(state.schema, record.outcome.prediction);
    const good = record.status === "already_target";
    return h("div", { class: good ? "side-outcome is-reached" : "side-outcome", id }, h("p", { class: "eyebrow" }, title), h("p", { class: "side-name" }, icon(state.schema.target.kind === "number" ? "number" : good ? "yes" : "no", 20), said), read ? gauge(read, { marks: false, small: true }) : null);
  };
  replace(place, side("Now", state.answer?.record, "outcome-now"), icon("arrow", 20), side("What if", state.whatif.record, "outcome-whatif"));
}

on("person", close);
on("goal", () => {
  if (state.whatif) explaining.request();
});
on("answer", () => {
  if (state.whatif) showOutcomes();
});
on("values", () => {
  if (!state.whatif) return;
  for (const one of features()) if (!state.whatif.names.includes(one.name)) state.whatif.values[one.name] = state.values[one.name];
  explaining.request();
});
