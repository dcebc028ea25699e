// The kept records of a person: listed, opened, compared, printed and erased.
import * as api from "./api.js";
import { find, h, replace } from "./dom.js";
import { field, head } from "./forms.js";
import { icon } from "./icons.js";
import { showLetter } from "./letter.js";
import { feature, state } from "./state.js";
import { count, labelOf, outcome, plain, readable, value, when } from "./format.js";

const STATUS = { found: "alternatives found", already_target: "has the outcome wanted", none_found: "no alternative", stopped: "stopped", model_error: "the model failed", invalid_input: "details not usable" };

const titleOf = (name) => state.artifacts.find((one) => one.name === name)?.title ?? name;

export function showRecords() {
  const dialog = find("records"), subjects = state.schema.records?.subjects;
  const who = subjects ? field("Person", { id: "records-subject", value: state.person?.id ?? "" }) : null;
  const decision = field("Decision number", { id: "records-decision" });
  const list = h("div", { id: "records-list", "aria-live": "polite" });
  const look = (event) => {
    event?.preventDefault();
    const [person, number] = [who?.input.value.trim(), decision.input.value.trim()];
    if (number) search(list, () => api.recordsOfDecision(number));
    else if (person) search(list, () => api.recordsOf(person), true);
    else replace(list, h("p", { class: "remark" }, subjects ? "Type a person or a decision number." : "Type a decision number; this service names no persons in its records."));
  };
  dialog.replaceChildren(
    head("Kept records", dialog),
    h("form", { class: "form-grid", onsubmit: look }, who?.element, decision.element, h("div", { class: "actions" }, h("button", { class: "button", type: "submit", id: "find-records" }, icon("search", 16), "Find"))),
    list);
  if (!dialog.open) dialog.showModal();
  look();
}

async function search(list, ask, ofPerson = false) {
  replace(list, h("p", { class: "waiting" }, "Looking …"));
  try {
    showList(list, (await ask()).records, () => search(list, ask, ofPerson), ofPerson);
  } catch (problem) {
    failed(list, problem);
  }
}

function failed(list, problem) {
  replace(list, h("p", { class: "fault", role: "alert" }, problem.status === 403 ? "This key may not do that; ask for one that may." : problem.message));
}

function showList(list, found, again, ofPerson) {
  if (!found.length) {
    replace(list, h("p", { class: "remark", id: "no-records" }, "No record is kept."));
    return;
  }
  const chosen = new Set();
  const compare = h("button", { class: "button button-small", type: "button", id: "compare", disabled: true, onclick: () => showComparison(list, [...chosen], again) }, icon("arrow", 15), "Compare two");
  const rows = found.map((one) => {
    const box = h("input", { type: "checkbox", "aria-label": `Compare the record of ${when(one.time)}` });
    box.addEventListener("change", () => {
      if (box.checked) chosen.add(one.id);
      else chosen.delete(one.id);
      compare.disabled = chosen.size !== 2;
    });
    return h("li", { class: "kept-row" }, box,
      h("div", {}, h("p", { class: "option-name" }, when(one.time)), h("p", { class: "option-about" }, [one.decision ? `decision ${one.decision}` : null, titleOf(one.artifact), STATUS[one.status] ?? one.status].filter(Boolean).join(" · "))),
      h("button", { class: "button button-small", type: "button", "aria-label": `Open the record of ${when(one.time)}`, onclick: () => open(list, one.id) }, icon("print", 15), "Open"));
  });
  replace(list, h("p", { class: "section-note" }, count(found.length, "record")), h("ul", { class: "kept-list" }, rows), h("div", { class: "actions" }, compare, ofPerson && state.schema.may.erase_records ? eraser(list, found, again) : null));
}

async function open(list, id) {
  try {
    const record = JSON.parse(await api.record(id));
    find("records").close();
    await showLetter(record);
  } catch (problem) {
    failed(list, problem);
  }
}

// Erasing is confirmed by a second button in the place of the first.
function eraser(list, found, again) {
  const holder = h("div", { class: "actions" });
  const first = () => replace(holder, h("button", { class: "button button-small", type: "button", id: "erase", onclick: second }, icon("erase", 15), "Erase all of this person"));
  const second = () => {
    replace(holder,
      h("button", { class: "button button-small button-danger", type: "button", id: "erase-now", onclick: gone }, icon("erase", 15), `Erase ${count(found.length, "record")} for good`),
      h("button", { class: "button button-small", type: "button", onclick: first }, "Keep them"));
    find("erase-now").focus();
  };
  const gone = async () => {
    try {
      await api.erase(found[0].subject);
      again();
    } catch (problem) {
      failed(list, problem);
    }
  };
  first();
  return holder;
}

const nameOf = (name) => {
  const known = feature(name);
  return known ? labelOf(known) : readable(name);
};

// Two records side by side: the details that differ, the decisions and the alternatives.
async function showComparison(list, ids, back) {
  try {
    const [one, other] = (await Promise.all(ids.map(api.record))).map((text) => JSON.parse(text)).sort((a, b) => a.time.localeCompare(b.time));
    const details = one.input.columns.map((name, k) => [nameOf(name), ...[one, other].map((record) => value(feature(name), record.input.values[record.input.columns.indexOf(name)]))]);
    const differing = details.filter(([, before, after]) => before !== after);
    const words = (record) => record.counterfactuals.map((each) => each.changes.map((change) => `${nameOf(change.feature)}: ${value(feature(change.feature), change.to)}`).join(", "));
    const limits = (record) => record.constraints.constraints.filter((each) => each.source !== "schema").map((each) => each.text).join("; ") || "none";
    const rows = [
      ["Decision", ...[one, other].map((record) => outcome(state.schema, record.outcome.prediction))],
      ["Edited", ...[one, other].map((record) => record.input.edited?.map(nameOf).join(", ") || "nothing")],
      ["Limits", ...[one, other].map((record) => limits(record) + (record.constraints.set_by && limits(record) !== "none" ? ` (${record.constraints.set_by})` : ""))],
      ["Alternatives", ...[one, other].map((record) => [...new Set(words(record))].join(" / ") || plain(STATUS[record.status]))],
      ...differing,
    ];
    replace(list,
      h("div", { class: "table-scroll", tabindex: 0, role: "region", "aria-label": "Comparison" },
        h("table", { class: "compared", id: "compared" }, h("caption", {}, differing.length ? `${count(differing.length, "detail")} differ` : "The same details"),
          h("thead", {}, h("tr", {}, h("td", {}), [one, other].map((record) => h("th", { scope: "col" }, when(record.time))))),
          h("tbody", {}, rows.map(([name, before, after]) => h("tr", { class: before === after ? "" : "differs" }, h("th", { scope: "row" }, name), h("td", {}, before), h("td", {}, after)))))),
      h("button", { class: "quiet", type: "button", id: "back-to-list", onclick: back }, icon("back", 15), "Back to the list"));
  } catch (problem) {
    failed(list, problem);
  }
}
