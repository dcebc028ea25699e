// Keep and print: explain once more so that the record is stored, then show the record and the letter.
import * as api from "./api.js";
import { find, h, replace } from "./dom.js";
import { icon } from "./icons.js";
import { announce, showError, clearNotice } from "./notices.js";
import { allValid } from "./applicant.js";
import { explainBody, state } from "./state.js";

const DEADLINE_MS = 10_000;
let busy = false;

export async function keep() {
  if (busy || !allValid()) return;
  busy = true;
  find("keep")?.setAttribute("aria-busy", "true");
  try {
    const response = await api.explain(explainBody(state.values, { keep: true, diagnose: true, deadline_ms: DEADLINE_MS }));
    clearNotice();
    const [record] = response.records;
    if (!response.kept) throw new api.Trouble("failed", "This service keeps no records, so there is no letter either.");
    show(record.ids.record, await api.letter(record.ids.record));
  } catch (problem) {
    if (problem.kind === "input") document.dispatchEvent(new CustomEvent("service-error", { detail: problem }));
    else showError(problem, problem.kind === "failed" ? null : keep);
  } finally {
    busy = false;
    find("keep")?.removeAttribute("aria-busy");
  }
}

// The letter's own element; a parsed document runs nothing, and its style is the page's letter.css.
function sheetOf(html) {
  const plain = html.replace(/<style>[^]*?<\/style>/, "");
  const parsed = new DOMParser().parseFromString(plain, "text/html").querySelector(".letter");
  return parsed ? document.importNode(parsed, true) : h("p", {}, "The letter could not be read.");
}

function show(id, html) {
  const dialog = find("kept"), sheet = sheetOf(html);
  replace(find("print-sheet"), sheet.cloneNode(true));
  const close = h("button", { class: "lock", type: "button", "aria-label": "Close", onclick: () => dialog.close() }, icon("cross", 18));
  dialog.replaceChildren(
    h("div", { class: "section-head" }, h("div", {}, h("h2", { id: "kept-heading" }, "Kept"), h("p", { class: "section-note" }, "Record ", h("code", { id: "record-id" }, id))), close),
    h("div", { class: "actions" },
      h("button", { class: "button button-primary", type: "button", id: "print", onclick: () => window.print() }, icon("print", 17), "Print the letter"),
      h("button", { class: "button", type: "button", id: "save-letter", onclick: () => save(`letter-${id}.html`, "text/html", html) }, icon("save", 17), "Letter"),
      h("button", { class: "button", type: "button", id: "save-record", onclick: () => saveRecord(id) }, icon("save", 17), "Record (JSON)")),
    h("div", { class: "sheet", tabindex: 0, role: "region", "aria-label": "The letter" }, sheet));
  document.body.classList.add("has-letter");
  dialog.addEventListener("close", () => document.body.classList.remove("has-letter"), { once: true });
  dialog.showModal();
  announce("Kept. The letter is ready to print.");
}

// The record exactly as the service stores it.
async function saveRecord(id) {
  try {
    save(`record-${id}.json`, "application/json", await api.record(id));
  } catch (problem) {
    find("kept").close();
    showError(problem, () => saveRecord(id));
  }
}

function save(name, type, text) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = h("a", { href: url, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
