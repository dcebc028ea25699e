// The letter of a kept record: what goes in, a preview, and the printer.
import * as api from "./api.js";
import { distinct } from "./cards.js";
import { find, h, replace } from "./dom.js";
import { field, head } from "./forms.js";
import { icon } from "./icons.js";
import { LatestRequest } from "./latest_request.js";
import { showError } from "./notices.js";
import { changesOf, choose, feature, state } from "./state.js";
import { LETTERS, labelOf, readable, value, when } from "./format.js";

const TYPED = "fasterce-letter";
const PEOPLE = [["sender", "Sender"], ["contact", "Whom to ask"], ["recipient", "Recipient"]];
// Typed once in this tab; the recipient is another one every time.
const typed = () => JSON.parse(sessionStorage.getItem(TYPED) ?? "{}");
let html = "";

// The letter's own element; a parsed document runs nothing, and its style is the page's letter.css.
function sheetOf(text) {
  const plain = text.replace(/<style>[^]*?<\/style>/, "");
  const parsed = new DOMParser().parseFromString(plain, "text/html").querySelector(".letter");
  return parsed ? document.importNode(parsed, true) : h("p", {}, "The letter could not be read.");
}

const about = (one) => one.changes.map((change) => {
  const known = feature(change.feature);
  return `${known ? labelOf(known) : readable(change.feature)}: ${value(known, change.to)}`;
}).join(", ");

// The same changes found by several methods are one; its position is that of the first.
function alternatives(record, changed) {
  return distinct(record).map((one, k) => {
    const position = record.counterfactuals.findIndex((other) => changesOf(other) === changesOf(one));
    const box = h("input", { type: "checkbox", checked: !state.left.has(changesOf(one)), "data-alternative": position });
    box.addEventListener("change", () => {
      choose(one, box.checked);
      changed();
    });
    return { box, position, letter: String(LETTERS[k] ?? k + 1), element: h("label", { class: "in-letter" }, box, h("span", {}, h("strong", {}, LETTERS[k] ?? k + 1), ` ${about(one)}`)) };
  });
}

// What was printed or saved before, and which alternatives it contained.
function written(letters, boxes) {
  if (!letters.length) return [];
  const names = (positions) => positions.map((position) => boxes.find((one) => one.position === position)?.letter ?? position + 1);
  const what = (one) => (boxes.length ? (one.alternatives.length ? `with ${names(one.alternatives).join(", ")}` : "without alternatives") : "");
  return [
    h("p", { class: "field-label" }, "Letters written so far"),
    h("ul", { class: "written" }, letters.map((one) => h("li", {}, [when(one.time), what(one), one.key ? `by ${one.key}` : ""].filter(Boolean).join(" · ")))),
  ];
}

export async function showLetter(record) {
  const dialog = find("kept"), id = record.ids.record, known = typed(), usual = state.schema.records?.letter ?? {};
  const people = PEOPLE.map(([name, label]) => [name, field(label, { id: `letter-${name}`, value: known[name] ?? "", lines: 3 })]);
  for (const [name, one] of people) one.input.placeholder = usual[name] ?? "";
  const sheet = h("div", { class: "sheet", tabindex: 0, role: "region", "aria-label": "Preview of the letter" }, h("p", { class: "waiting" }, "Writing …"));
  const body = () => ({
    ...Object.fromEntries(people.map(([name, one]) => [name, one.input.value.trim()])),
    alternatives: boxes.length ? boxes.filter((one) => one.box.checked).map((one) => Number(one.box.dataset.alternative)) : null,
  });
  const preview = new LatestRequest((signal) => api.letter(id, body(), signal), (text) => {
    html = text;
    replace(sheet, sheetOf(text));
    replace(find("print-sheet"), sheetOf(text));
    none.hidden = !boxes.length || boxes.some((one) => one.box.checked);
    const open = people.filter(([name, one]) => !one.input.value.trim() && (usual[name] ?? "").startsWith("["));
    unfilled.hidden = !open.length;
    unfilled.textContent = `Still to fill in: ${open.map(([name]) => PEOPLE.find(([other]) => other === name)[1].toLowerCase()).join(", ")}.`;
  }, (problem) => {
    dialog.close();
    showError(problem, () => showLetter(record));
  });
  const boxes = alternatives(record, () => preview.request());
  const before = h("div", { id: "letters-written", "aria-live": "polite" });
  const showWritten = async () => replace(before, ...written((await api.letters(id)).letters, boxes));
  // What is printed or saved is stored with the record first: without that there is no letter.
  const issue = async (use) => {
    try {
      html = await api.letter(id, { ...body(), keep: true });
      replace(find("print-sheet"), sheetOf(html));
      await showWritten();
      use();
    } catch (problem) {
      dialog.close();
      showError(problem, () => showLetter(record));
    }
  };
  const none = h("p", { class: "fault", hidden: true, role: "alert" }, "No alternative goes into the letter.");
  const unfilled = h("p", { class: "remark", id: "unfilled", hidden: true });
  for (const [name, one] of people) {
    one.input.addEventListener("input", () => {
      if (name !== "recipient") sessionStorage.setItem(TYPED, JSON.stringify({ ...typed(), [name]: one.input.value }));
      preview.request();
    });
  }
  dialog.replaceChildren(
    head("Kept", dialog, h("p", { class: "section-note" }, "Record ", h("code", { id: "record-id" }, id))),
    h("div", { class: "actions" },
      h("button", { class: "button button-primary", type: "button", id: "print", onclick: () => issue(() => window.print()) }, icon("print", 17), "Print the letter"),
      h("button", { class: "button", type: "button", id: "save-letter", onclick: () => issue(() => save(`letter-${id}.html`, "text/html", html)) }, icon("save", 17), "Save the letter"),
      h("button", { class: "button", type: "button", id: "save-record", onclick: () => saveRecord(id) }, icon("save", 17), "Save the record (JSON)")),
    h("div", { class: "letter-work" },
      h("form", { class: "letter-form", "aria-label": "What goes into the letter", onsubmit: (event) => event.preventDefault() },
        people.map(([, one]) => one.element), unfilled,
        boxes.length ? h("fieldset", {}, h("legend", { class: "field-label" }, "Alternatives in the letter"), boxes.map((one) => one.element)) : null, none, before),
      sheet));
  document.body.classList.add("has-letter");
  dialog.addEventListener("close", () => {
    preview.cancel();
    document.body.classList.remove("has-letter");
  }, { once: true });
  if (!dialog.open) dialog.showModal();
  preview.request();
  // The list is no reason not to show the letter.
  await showWritten().catch(() => {});
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
