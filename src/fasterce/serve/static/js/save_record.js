// Keep and print: who it is about, the record, and its letter.
import * as api from "./api.js";
import { find, h } from "./dom.js";
import { field, head } from "./forms.js";
import { icon } from "./icons.js";
import { showLetter } from "./letter.js";
import { announce, showError, clearNotice } from "./notices.js";
import { allValid } from "./applicant.js";
import { limitCount } from "./limits.js";
import { edited, explainBody, markSaved, notify, state } from "./state.js";
import { count } from "./format.js";

const DEADLINE_MS = 10_000;
const BY = "fasterce-by";
let busy = false;

// Asks whom the record is about; nothing is stored before that.
export function keep() {
  if (busy || !allValid()) return;
  const dialog = find("kept"), { records } = state.schema;
  const needs = (name) => records?.required?.includes(name) ?? false;
  const subject = records?.subjects ? field("Person", { id: "subject", value: state.person?.id ?? "", required: needs("subjects"), about: "Stored as a pseudonym only; the person’s records are found by it." }) : null;
  const row = field("Row or application", { id: "row", value: state.person?.id ?? "", required: needs("row_ids") });
  const decision = field("Decision number", { id: "decision-number", required: needs("decision_ids") });
  const by = field("Who set the limits", { id: "by", value: sessionStorage.getItem(BY) ?? "", required: needs("constraints_by"), about: limitCount() ? `${count(limitCount(), "limit")} set on this page.` : "You have set no limits. Those set by policy always apply." });
  const n = edited().length;
  const form = h("form", { method: "dialog", id: "keep-form" },
    head("Keep this explanation", dialog),
    n && !state.person?.typed ? h("p", { class: "hint" }, icon("hint", 16), h("span", {}, `${count(n, "detail")} edited: record and letter will say so.`)) : null,
    h("div", { class: "form-grid" }, subject?.element, decision.element, row.element, by.element),
    h("div", { class: "actions" }, h("button", { class: "button button-primary", type: "submit", id: "keep-now" }, icon("save", 17), "Keep")));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    sessionStorage.setItem(BY, by.input.value.trim());
    const given = (one) => one?.input.value.trim() || null;
    store({ subject: given(subject), decision: given(decision), row: given(row), by: given(by) });
  });
  dialog.replaceChildren(form);
  if (!dialog.open) dialog.showModal();
}

async function store({ subject, decision, row, by }) {
  if (busy) return;
  busy = true;
  find("keep-now")?.setAttribute("aria-busy", "true");
  const one = (given) => (given === null ? null : [given]);
  const ids = { subjects: one(subject), decision_ids: one(decision), row_ids: one(row), constraints_by: by, edited: state.person?.typed ? null : [edited()] };
  try {
    const response = await api.explain(explainBody(state.values, { ...ids, keep: true, diagnose: true, deadline_ms: DEADLINE_MS }));
    clearNotice();
    const [record] = response.records;
    if (!response.kept) throw new api.ServiceError("failed", "This service keeps no records, so there is no letter either.");
    markSaved();
    notify("saved");
    announce("Kept. The letter can be looked at and printed.");
    await showLetter(record);
  } catch (problem) {
    find("kept").close();
    if (problem.kind === "input" && problem.fields?.length) document.dispatchEvent(new CustomEvent("service-error", { detail: problem }));
    else showError(problem, problem.kind === "failed" ? null : keep);
  } finally {
    busy = false;
    find("keep-now")?.removeAttribute("aria-busy");
  }
}
