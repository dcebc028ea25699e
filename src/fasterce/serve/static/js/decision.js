// The decision at the top: in words, and how far it is from the one wanted.
import { find, h, replace } from "./dom.js";
import { gauge, reading } from "./gauge.js";
import { icon } from "./icons.js";
import { newApplicant, chooseApplicant, showFaults, summary } from "./applicant.js";
import { details, edited, on, state } from "./state.js";
import { amount, count, outcome, percent } from "./format.js";

export const targetText = (record) => {
  const target = record?.target, { schema } = state;
  if (!target) return "another outcome";
  if (target.kind === "number") {
    const [low, high] = [target.low, target.high].map((end) => (end === null ? null : amount(end)));
    return low === null && high === null ? "any number" : low === null ? `at most ${high}` : high === null ? `at least ${low}` : `${low} to ${high}`;
  }
  return target.kind === "any other" ? "another outcome" : outcome(schema, target.class);
};

export function showEmpty(known) {
  const rows = known.list.map((one) =>
    h("li", {}, h("button", { class: "row-button", type: "button", onclick: () => chooseApplicant(one) }, h("span", { class: "option-name" }, String(one.id)), h("span", { class: "option-about" }, summary(one)), icon("arrow", 16))));
  replace(
    find("decision"),
    h("div", { class: "empty" },
      h("h1", { id: "decision-heading" }, "Whose decision shall we look at?"),
      h("p", { class: "lead" }, "Pick a person to see the decision and what would have had to be different."),
      h("ul", { class: "row-list" }, rows),
      h("button", { class: "button", type: "button", onclick: newApplicant }, icon("plus", 17), "Type in a person")),
  );
}

export function showWaiting() {
  replace(find("decision"), h("h1", { id: "decision-heading", class: "waiting" }, "Evaluating …"));
}

export function showBroken(sentence) {
  replace(find("decision"), h("div", { class: "empty" }, h("h1", { id: "decision-heading" }, "There is nothing to show yet"), h("p", { class: "lead" }, sentence)));
}

// A tick for the outcome wanted, a cross for one that is not; nothing of the kind before it is known what is wanted.
function markOf(record, reached) {
  const { target } = state.schema;
  if (target.kind === "number" || state.undecided) return "number";
  const neither = target.unwanted?.length && target.classes.length > 2 && !target.unwanted.includes(record.outcome.prediction);
  return reached ? "yes" : neither ? "number" : "no";
}

export function showDecision({ keep, whatif, records }) {
  const { record } = state.answer, { schema } = state;
  const read = reading(record, schema);
  const reached = record.status === "already_target" && !state.undecided, unknown = record.outcome.prediction === null;
  const name = unknown ? "Not answered" : outcome(schema, record.outcome.prediction);
  const mark = markOf(record, reached), n = edited().length;
  const who = state.person?.typed ? "Person typed in" : `Person ${state.person?.id}`;
  replace(
    find("decision"),
    h("div", { class: "decision-words" },
      h("p", { class: "eyebrow" }, who, editedTag(n),
        h("span", { class: "tag tag-warn", id: "not-used", hidden: true }, "The detail marked as wrong is not used")),
      h("h1", { id: "decision-heading", class: reached ? "is-reached" : "" }, icon(mark, 34), h("span", { class: "visually-hidden" }, "Decision: "), h("span", { class: "decision-name" }, name)),
      h("p", { class: "lead" }, sentence(record, read)),
      h("div", { class: "actions" },
        schema.records?.kept === false || state.undecided ? null : h("button", { class: "button button-primary", type: "button", "data-keep": "keep", id: "keep", onclick: keep }, icon("print", 17), "Keep and print"),
        h("button", { class: "button", type: "button", "data-keep": "start-whatif", id: "start-whatif", onclick: whatif }, icon("try", 15), "What if …"),
        !schema.may.find_records ? null : h("button", { class: "button", type: "button", "data-keep": "show-records", id: "show-records", onclick: records }, icon("list", 17), "Kept records"))),
    read ? h("div", { class: "decision-gauge" }, gauge(read), read.needed ? h("p", { class: "gauge-note" }, h("span", { class: "tick-key", "aria-hidden": "true" }), read.needed) : null) : null,
  );
  showFaults();
}

// A person who is typed in begins as a typical one, whose decision must not be taken for theirs.
function editedTag(n) {
  const typed = state.person?.typed, all = details().length;
  const said = !typed ? (n ? `${count(n, "detail")} edited` : "") : n === 0 ? "Typical details: replace them by the person’s" : n < all ? `${n} of ${count(all, "detail")} changed, the others are typical` : "";
  return said ? h("span", { class: "tag tag-warn" }, said) : null;
}

function sentence(record, read) {
  const wanted = targetText(record);
  if (record.status === "invalid_input") return record.reason ?? "These details cannot be used.";
  if (record.status === "model_error") return `The model could not answer: ${record.reason ?? "it gave no reason."}`;
  if (state.undecided) return "Choose below which outcome is wanted.";
  if (record.status === "already_target") return "This is the outcome wanted.";
  if (!read) return `The model does not say by how much. Wanted: ${wanted}.`;
  if (record.outcome.score.kind === "number") return `Wanted: ${wanted}.`;
  if (record.target?.kind === "any other") return `The model is ${percent(read.share)} sure of this.`;
  return `By the model, the chance of ${wanted} is ${percent(read.share)}.`;
}

on("schema", () => replace(find("decision")));
