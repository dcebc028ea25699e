// The applicant: a searchable list, or details typed in; and beside them what may change.
import { applicants, key } from "./api.js";
import { find, fresh, h, replace } from "./dom.js";
import { editor, outOfRange } from "./fields.js";
import { icon } from "./icons.js";
import { leaving } from "./leave.js";
import { limitCount, limitsPanel } from "./limits.js";
import { asPicked, details, edited, feature, features, on, setApplicant, setValue, state, notify } from "./state.js";
import { bare, count, labelOf, value } from "./format.js";

const SHOWN = 30;
let editors = new Map();
const unread = new Map(); // fields whose text is no value, and why
let limits = null;
let tab = "details";

export function typicalValues() {
  return Object.fromEntries(features().map((one) => [one.name, one.typical ?? (one.kind === "categorical" ? one.categories[0] : one.low)]));
}

export const newApplicant = () => leaving(() => setApplicant({ id: null, typed: true }, typicalValues()));

export function chooseApplicant(one) {
  leaving(() => setApplicant({ id: String(one.id), typed: false }, one.values));
}

// The people there are, or null where the service keeps no list, or this key may not see it.
export async function findApplicants(text, first = 0, size = SHOWN, signal = undefined) {
  if (!state.schema.may.list_applicants) return null;
  const found = await applicants(state.artifact, text, first, size, signal);
  return { total: found.total, list: found.people };
}

// A few details by which one tells people apart.
export function summary(one) {
  const row = one.values;
  const telling = features().filter((feature) => row[feature.name] !== undefined && row[feature.name] !== null);
  const numeric = telling.filter((feature) => feature.kind === "numeric" && row[feature.name] !== 0);
  const numbers = [...numeric.filter((feature) => feature.unit), ...numeric.filter((feature) => !feature.unit)].slice(0, 2);
  const words = telling.filter((feature) => feature.kind !== "numeric").slice(0, 1);
  // A number with a unit needs no label.
  const said = (feature) => (feature.kind === "numeric" && !feature.unit ? `${labelOf(feature)}: ` : "") + value(feature, row[feature.name]);
  return [...numbers, ...words].map(said).join(" · ");
}

const noList = () => (key.get() ? "Your access key does not open a list of people. Type the details in below. " : "");

export function showPicker(known) {
  const typed = h("button", { class: "quiet", type: "button", id: "new-person", onclick: newApplicant }, icon(known ? "plus" : "back", 16), known ? "Type in a person" : "Start over");
  replace(find("picker"), known ? combobox() : h("p", { class: "picker-none" }, noList(), "Details typed here stay on this page until you keep a record."), typed);
}

function combobox() {
  const list = fresh("people");
  const input = h("input", {
    type: "text", id: "find-person", role: "combobox", autocomplete: "off", spellcheck: "false", placeholder: "Find a person by number or name",
    "aria-label": "Find a person", "aria-expanded": "false", "aria-controls": list, "aria-autocomplete": "list",
  });
  const options = h("ul", { class: "options", id: list, role: "listbox", "aria-label": "People", hidden: true });
  let found = [], at = -1, waiting = null, controller = null, looking = false, first = false, entered = false;

  const close = () => {
    options.hidden = true;
    at = -1;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  };
  const choose = (one) => {
    close();
    input.value = "";
    chooseApplicant(one);
  };
  const mark = (to) => {
    if (!found.length) return;
    at = (to + found.length) % found.length;
    [...options.querySelectorAll("[role=option]")].forEach((option, k) => option.setAttribute("aria-selected", String(k === at)));
    const option = options.querySelectorAll("[role=option]")[at];
    input.setAttribute("aria-activedescendant", option.id);
    option.scrollIntoView({ block: "nearest" });
  };
  const look = async () => {
    waiting = null;
    controller?.abort();
    const mine = (controller = new AbortController());
    looking = true;
    try {
      const response = await findApplicants(input.value.trim(), 0, SHOWN, controller.signal);
      found = response?.list ?? [];
      const lines = found.map((one, k) =>
        h("li", { role: "option", id: `${list}-${k}`, "aria-selected": "false", onmousedown: (event) => event.preventDefault(), onclick: () => choose(one) },
          h("span", { class: "option-name" }, String(one.id)), h("span", { class: "option-about" }, summary(one))));
      const more = (response?.total ?? 0) - found.length;
      options.replaceChildren(...lines, found.length ? (more > 0 ? h("li", { class: "option-more", role: "presentation" }, `${count(more, "more person", "more people")}: type to narrow down`) : "") : h("li", { class: "option-more", role: "presentation" }, "Nobody found: try a number or another detail"));
      options.hidden = false;
      at = -1;
      input.setAttribute("aria-expanded", "true");
      if (first) mark(0);
      // While more was typed, another search is about to start; it chooses.
      if (entered && waiting === null && found.length) choose(found[0]);
    } catch (error) {
      if (error.name !== "AbortError") document.dispatchEvent(new CustomEvent("service-error", { detail: error }));
    } finally {
      if (controller === mine) {
        looking = first = false;
        if (waiting === null) entered = false;
      }
    }
  };
  input.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(look, 80);
  });
  input.addEventListener("focus", look);
  input.addEventListener("click", () => options.hidden && look());
  input.addEventListener("blur", () => setTimeout(close, 120));
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" && options.hidden) {
      first = true;
      if (!looking) look();
    } else if (event.key === "ArrowDown") mark(at + 1);
    else if (event.key === "ArrowUp") mark(at - 1);
    // Who types and presses Enter means what was typed, not what was found before.
    else if (event.key === "Enter" && (looking || waiting !== null)) entered = true;
    else if (event.key === "Enter" && !options.hidden && found.length) choose(found[Math.max(at, 0)]);
    else if (event.key === "Escape") close();
    else return;
    event.preventDefault();
  });
  return h("div", { class: "combobox" }, icon("search", 17), input, options);
}

export function showForm() {
  editors = new Map(details().map((one) => [one.name, editor(one, (given) => typed(one, given), { keep: `detail-${one.name}` })]));
  limits = limitsPanel();
  const fields = h("div", { class: "fields" }, [...editors.values()].map((one) => one.element), h("button", { class: "quiet", type: "button", id: "as-picked", onclick: backToPicked }, icon("back", 15), "Back to how it was"));
  const tabs = [
    ["details", "Details", fields],
    ["limits", "What may change", limits.element],
  ].map(([name, title, body]) => ({
    name,
    button: h("button", { class: "tab", type: "button", role: "tab", id: `tab-${name}`, "aria-controls": `panel-${name}`, onclick: () => turn(name) }, title),
    panel: h("div", { class: "tab-panel", role: "tabpanel", id: `panel-${name}`, "aria-labelledby": `tab-${name}` }, body),
  }));
  const turn = (name) => {
    tab = name;
    for (const one of tabs) {
      one.button.setAttribute("aria-selected", String(one.name === name));
      one.button.tabIndex = one.name === name ? 0 : -1;
      one.panel.hidden = one.name !== name;
    }
  };
  const bar = h("div", { class: "tabs", role: "tablist", "aria-label": "Details and limits" }, tabs.map((one) => one.button));
  bar.addEventListener("keydown", (event) => {
    if (!["ArrowLeft", "ArrowRight"].includes(event.key)) return;
    turn(tab === "details" ? "limits" : "details");
    find(`tab-${tab}`).focus();
  });
  replace(find("person-body"), bar, tabs.map((one) => one.panel));
  turn(tab);
  showValues();
}

function typed(one, given) {
  const wrong = given === undefined ? needed(one.name) : outOfRange(one, given);
  if (wrong) {
    unread.set(one.name, wrong);
    showFaults();
    return;
  }
  unread.delete(one.name);
  setValue(one.name, given);
}

function backToPicked() {
  unread.clear();
  asPicked();
  notify("person-form");
}

const NEEDED = { text: "A value is needed here.", time: "A date or time is needed here." };
const needed = (name) => NEEDED[feature(name).kind] ?? (feature(name).whole ? "A whole number is needed here." : "A number is needed here.");

// Whether everything typed can be used; if not, the first field that cannot has the focus.
export function allValid() {
  const [wrong] = [...editors].find(([name]) => unread.has(name) || name in state.faults) ?? [];
  if (wrong === undefined) return true;
  find("tab-details").click();
  if (find("fold").getAttribute("aria-expanded") !== "true") find("fold").click();
  editors.get(wrong).input.focus();
  return false;
}

// What was typed over, and numbers beyond anything the model has seen.
function noteOf(one) {
  const now = state.values[one.name], was = state.picked[one.name];
  const beyond = one.kind === "numeric" && !one.promised && typeof now === "number" && (now < one.low || now > one.high);
  const parts = [now !== was && !state.person?.typed ? `edited, was ${value(one, was)}` : null, beyond ? `the model has seen ${bare(one, one.low)} to ${value(one, one.high)} only` : null];
  return parts.filter(Boolean).join("; ");
}

export function showFaults() {
  for (const [name, one] of editors) one.fault(unread.get(name) ?? state.faults[name]);
  // The decision is that of the last details that could be used.
  const note = find("not-used");
  if (note) note.hidden = ![...editors.keys()].some((name) => unread.has(name) || name in state.faults);
  if (Object.keys(state.faults).length) limits?.show();
}

function showValues() {
  for (const [name, one] of editors) {
    if (!unread.has(name)) one.show(state.values[name]);
    one.note(noteOf(feature(name)));
    one.element.classList.toggle("is-edited", state.values[name] !== state.picked[name]);
  }
  const back = find("as-picked");
  if (back) back.hidden = !edited().length && !unread.size;
  showFaults();
  limits?.show();
  showCount();
}

function showCount() {
  const n = limitCount(), tabButton = find("tab-limits");
  tabButton?.replaceChildren("What may change", n ? h("span", { class: "count", "aria-label": `, ${count(n, "limit")} set` }, String(n)) : "");
  const fold = find("fold");
  fold.replaceChildren("Details and what may change", n ? h("span", { class: "count", "aria-label": `, ${count(n, "limit")} set` }, String(n)) : "", icon("down", 18));
}

on("person", () => unread.clear());
on("person values person-form resumed", showValues);
on("limits", () => {
  limits?.show();
  showCount();
});
on("faults", showFaults);

find("fold").addEventListener("click", () => {
  const open = find("fold").getAttribute("aria-expanded") !== "true";
  find("fold").setAttribute("aria-expanded", String(open));
  find("person-body").classList.toggle("is-open", open);
});
