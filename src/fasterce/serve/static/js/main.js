// The page: what is there, who it is about, what is asked, what came back.
import { advice } from "./advice.js";
import * as api from "./api.js";
import { Latest } from "./asking.js";
import { distinct, showAlternatives } from "./cards.js";
import { showBroken, showDecision, showEmpty, showWaiting } from "./decision.js";
import { find, h, replace } from "./dom.js";
import { showGoal } from "./goal.js";
import { icon } from "./icons.js";
import { keep } from "./keeping.js";
import { limitCount } from "./limits.js";
import { announce, inform, settle } from "./notices.js";
import { newPerson, people, showForm, showPicker } from "./person.js";
import * as place from "./place.js";
import { feature, none, on, question, start, state, tell } from "./state.js";
import { themeButton } from "./theme.js";
import * as whatif from "./whatif.js";
import { count, outcome } from "./words.js";

const FIRST_SHOWN = 6;
const REASONS_AFTER = 180;
const LONG = 6_000, LONGER = 20_000;
const ALONE = { method: "closest", n: 1 };
let reasons = null, patience = LONG;

const asking = new Latest((signal) => api.explain(question(state.values), signal), received, failed);

// What would do without the limits set here: one search more, so it comes first.
const freeing = new Latest(
  (signal) => api.explain(question(state.values, { ...ALONE, freeze: [], ranges: {} }), signal),
  (answer) => shown({ free: answer.records[0] }),
  () => {},
);

// Which rules stand in the way takes many: asked for when nothing else is.
const explaining = new Latest(
  (signal) => api.explain(question(state.values, { ...ALONE, why_not: true, deadline_ms: patience }), signal),
  (answer) => {
    const [{ refusal, reason }] = answer.records;
    shown({ record: { ...state.answer.record, refusal, reason }, looking: false });
  },
  (trouble) => {
    shown({ looking: false });
    if (trouble.kind !== "late") failed(trouble);
  },
);

function ask() {
  if (!state.person) return;
  clearTimeout(reasons);
  freeing.forget();
  explaining.forget();
  patience = LONG;
  asking.soon();
}

function received(answer, since) {
  settle();
  state.faults = none();
  tell("faults");
  const [record] = answer.records, why = record.status === "none_found";
  shown({ record, ms: performance.now() - since, looking: why, free: null });
  requestAnimationFrame(() => pulse(performance.now() - since));
  if (!why) return;
  if (limitCount()) freeing.soon();
  clearTimeout(reasons);
  reasons = setTimeout(() => explaining.soon(), REASONS_AFTER);
}

function shown(known) {
  state.answer = { ...state.answer, ...known };
  const { record, looking } = state.answer;
  for (const part of ["goal", "alternatives"]) find(part).hidden = false;
  if (state.wanted === null) showGoal();
  showDecision({ keep, whatif: () => whatif.open([]) });
  showAlternatives((one) => whatif.open(one.changes), (of) => advice(of, longer));
  tell("answer");
  if (!looking) say(record);
}

function longer() {
  patience = LONGER;
  shown({ looking: true });
  explaining.soon();
}

function say(record) {
  const { prediction } = record.outcome;
  const decision = prediction === null ? "No decision" : `Decision: ${outcome(state.schema, prediction)}`;
  announce(`${decision}. ${count(distinct(record).length, "alternative")}.`);
}

function pulse(ms) {
  find("pulse").replaceChildren(h("span", { class: "pulse-dot" }), `${Math.round(ms)} ms`);
  document.documentElement.dataset.ms = String(Math.round(ms));
}

function failed(trouble) {
  const left = trouble.fields?.filter((one) => !atField(one)) ?? [];
  tell("faults");
  if (trouble.kind === "input" && trouble.fields?.length && !left.length) {
    settle();
    announce(trouble.fields.map((one) => one.message).join(" "));
    return;
  }
  inform(trouble, ask);
}

// By the field, or, where that is the row as a whole, by the column named in the sentence.
function meant(one) {
  const found = api.placeOf(one.field);
  if (found.name) return found;
  const quoted = /[Cc]olumn '([^']+)'/.exec(one.message);
  return quoted && /^rows/.test(one.field) ? { part: "rows", name: quoted[1] } : found;
}

// A fault is shown beside the control it is about, where there is one.
function atField(one) {
  const { part, name } = meant(one);
  if (!name || !feature(name)) return false;
  state.faults[part === "rows" ? name : `${part}.${name}`] = one.message;
  return true;
}

function showSwitcher() {
  const holder = find("switcher");
  if (state.artifacts.length < 2) {
    replace(holder, h("p", { class: "artifact" }, state.schema.title ?? state.artifact));
    return;
  }
  const input = h("select", { class: "select", id: "artifact", onchange: () => enter(input.value) }, state.artifacts.map((one) => h("option", { value: one.name }, one.title ?? one.name)));
  input.value = state.artifact;
  replace(holder, h("label", { class: "visually-hidden", for: "artifact" }, "Model"), h("div", { class: "select-control" }, input, icon("down", 16)));
}

async function enter(name) {
  for (const one of [asking, freeing, explaining]) one.forget();
  try {
    const schema = await api.schema(name);
    state.artifact = schema.artifact ?? name;
    start(schema);
    place.put("artifact", state.artifact);
    tell("schema");
    whatif.close();
    showSwitcher();
    showForm();
    showGoal();
    for (const part of ["goal", "alternatives"]) find(part).hidden = true;
    const known = await people("", 0, FIRST_SHOWN);
    showPicker(known !== null);
    document.body.classList.toggle("no-person", true);
    if (known?.list.length) showEmpty(known);
    else newPerson();
  } catch (trouble) {
    if (!state.schema) showBroken(trouble.kind === "key" ? "Sign in to go on." : trouble.message);
    inform(trouble, () => enter(name));
  }
}

async function begin() {
  showActions();
  showWaiting();
  try {
    const found = await api.artifacts();
    state.artifacts = found.artifacts;
    const asked = place.get("artifact");
    const known = state.artifacts.some((one) => one.name === asked);
    await enter(known ? asked : state.artifacts[0].name);
  } catch (trouble) {
    showBroken(trouble.kind === "key" ? "Sign in to go on." : trouble.message);
    inform(trouble, begin);
  }
}

function showActions() {
  const out = h("button", { class: "lock", type: "button", id: "sign-out", "aria-label": "Sign out", title: "Sign out" }, icon("key", 18));
  out.addEventListener("click", () => {
    api.key.drop();
    location.reload();
  });
  out.hidden = !api.key.get();
  document.addEventListener("signed", () => (out.hidden = false));
  replace(find("bar-actions"), out, themeButton());
}

on("person", () => {
  document.body.classList.remove("no-person");
  asking.forget();
  showWaiting();
  find("alternatives").hidden = true;
  ask();
});
on("values limits goal", ask);
document.addEventListener("trouble", (event) => failed(event.detail));
begin();
