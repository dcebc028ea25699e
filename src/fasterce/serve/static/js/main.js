// The page: the artifact, the applicant, requests to the service and their results.
import { noCounterfactualPanel } from "./infeasible.js";
import * as api from "./api.js";
import { LatestRequest } from "./latest_request.js";
import { distinct, showAlternatives } from "./cards.js";
import { leaving } from "./leave.js";
import { showRecords } from "./records.js";
import * as session from "./session.js";
import { showBroken, showDecision, showEmpty, showWaiting } from "./decision.js";
import { find, h, replace } from "./dom.js";
import { showTarget } from "./target.js";
import { icon } from "./icons.js";
import { keep } from "./save_record.js";
import { limitCount } from "./limits.js";
import { announce, showError, clearNotice } from "./notices.js";
import { newApplicant, findApplicants, showForm, showPicker } from "./applicant.js";
import * as urlState from "./url_state.js";
import { feature, none, on, explainBody, start, state, notify } from "./state.js";
import { themeButton } from "./theme.js";
import * as whatif from "./what_if.js";
import { count, outcome } from "./format.js";

const FIRST_SHOWN = 6;
const DIAGNOSE_AFTER_MS = 180;
const LONG_MS = 6_000, LONGER_MS = 20_000;
const ALONE = { method: "closest", n: 1 };
const ENDANGERING = { method: "all", n: 1, target: "any other", freeze: [], ranges: {} };
let timer = null, deadlineMs = LONG_MS;

const explaining = new LatestRequest((signal) => api.explain(explainBody(state.values), signal), received, failed);

// A counterfactual without the limits set here: one search more, so it comes first.
const unlimited = new LatestRequest(
  (signal) => api.explain(explainBody(state.values, { ...ALONE, freeze: [], ranges: {} }), signal),
  (answer) => shown({ free: answer.records[0] }),
  () => {},
);

// Which constraints prevent a counterfactual: many searches, so it runs when nothing else does.
const diagnosing = new LatestRequest(
  (signal) => api.explain(explainBody(state.values, { ...ALONE, diagnose: true, deadline_ms: deadlineMs }), signal),
  (answer) => {
    const [{ infeasible, reason }] = answer.records;
    shown({ record: { ...state.answer.record, infeasible, reason }, looking: false });
  },
  (problem) => {
    shown({ looking: false });
    if (problem.kind !== "late") failed(problem);
  },
);

// What would take the outcome wanted away from a person who has it.
const endangering = new LatestRequest(
  (signal) => api.explain(explainBody(state.values, ENDANGERING), signal),
  (answer) => shown({ danger: answer.records[0] }),
  (problem) => {
    shown({ danger: null });
    failed(problem);
  },
);

function endanger() {
  shown({ danger: "looking" });
  endangering.request();
}

function explainNow() {
  if (!state.person) return;
  clearTimeout(timer);
  for (const one of [unlimited, diagnosing, endangering]) one.cancel();
  deadlineMs = LONG_MS;
  explaining.request();
}

function received(answer, since) {
  clearNotice();
  state.faults = none();
  notify("faults");
  const [record] = answer.records, why = record.status === "none_found" && !state.undecided;
  shown({ record, ms: performance.now() - since, looking: why, free: null, danger: null });
  requestAnimationFrame(() => pulse(performance.now() - since));
  if (!why) return;
  if (limitCount()) unlimited.request();
  clearTimeout(timer);
  timer = setTimeout(() => diagnosing.request(), DIAGNOSE_AFTER_MS);
}

function shown(known) {
  state.answer = { ...state.answer, ...known };
  const { record, looking } = state.answer;
  for (const part of ["goal", "alternatives"]) find(part).hidden = false;
  const tryIt = (one) => whatif.open(one.changes);
  showDecision({ keep, whatif: () => whatif.open([]), records: showRecords });
  showAlternatives(tryIt, (of) => noCounterfactualPanel(of, longer, { endanger, tryIt }));
  notify("answer");
  if (!looking) say(record);
}

function longer() {
  deadlineMs = LONGER_MS;
  shown({ looking: true });
  diagnosing.request();
}

function say(record) {
  const { prediction } = record.outcome;
  const decision = prediction === null ? "No decision" : `Decision: ${outcome(state.schema, prediction)}`;
  const rest = state.undecided ? "Choose which outcome is wanted" : record.status === "already_target" ? "This is the outcome wanted" : count(distinct(record).length, "alternative");
  announce(`${decision}. ${rest}.`);
}

function pulse(ms) {
  find("pulse").replaceChildren(h("span", { class: "pulse-dot" }), `${Math.round(ms)} ms`);
  document.documentElement.dataset.ms = String(Math.round(ms));
}

function failed(problem) {
  const left = problem.fields?.filter((one) => !atField(one)) ?? [];
  notify("faults");
  if (problem.kind === "input" && problem.fields?.length && !left.length) {
    clearNotice();
    announce(problem.fields.map((one) => one.message).join(" "));
    return;
  }
  showError(problem, explainNow);
}

// An error is shown beside the control it is about, where there is one.
function atField(one) {
  const { part, name } = api.fieldOf(one.field);
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
  for (const one of [explaining, unlimited, diagnosing, endangering]) one.cancel();
  try {
    const schema = await api.schema(name);
    state.artifact = schema.artifact ?? name;
    start(schema);
    const again = session.restore();
    urlState.put("artifact", state.artifact);
    notify("schema");
    whatif.close();
    showSwitcher();
    showForm();
    showTarget();
    for (const part of ["goal", "alternatives"]) find(part).hidden = true;
    const known = await findApplicants("", 0, FIRST_SHOWN);
    showPicker(known !== null);
    document.body.classList.toggle("no-person", true);
    if (again) notify("resumed");
    else if (known?.list.length) showEmpty(known);
    else newApplicant();
  } catch (problem) {
    if (!state.schema) showBroken(problem.kind === "key" ? "Sign in to go on." : problem.message);
    showError(problem, () => enter(name));
  }
}

async function begin() {
  showActions();
  showWaiting();
  try {
    const found = await api.artifacts();
    state.artifacts = found.artifacts;
    const wanted = urlState.get("artifact");
    const known = state.artifacts.some((one) => one.name === wanted);
    await enter(known ? wanted : state.artifacts[0].name);
  } catch (problem) {
    showBroken(problem.kind === "key" ? "Sign in to go on." : problem.message);
    showError(problem, begin);
  }
}

function showActions() {
  const out = h("button", { class: "lock", type: "button", id: "sign-out", "aria-label": "Sign out", title: "Sign out" }, icon("key", 18));
  out.addEventListener("click", () => leaving(() => {
    api.key.drop();
    session.forget();
    start(state.schema);
    location.reload();
  }));
  out.hidden = !api.key.get();
  document.addEventListener("signed", () => (out.hidden = false));
  replace(find("bar-actions"), out, themeButton());
}

on("person resumed", () => {
  document.body.classList.remove("no-person");
  explaining.cancel();
  showWaiting();
  find("alternatives").hidden = true;
  explainNow();
});
on("values limits goal", explainNow);
document.addEventListener("service-error", (event) => failed(event.detail));
begin();
