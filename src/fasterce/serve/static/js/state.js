// What the page knows, and who wants to hear of it.

// By columns' names, which may be any text: nothing is there that nobody put there.
export const none = () => Object.create(null);

export const state = {
  artifacts: [],
  artifact: null,
  schema: null,
  person: null, // {id, typed}: where the values are from
  picked: {}, // the values as they came
  values: {},
  frozen: new Set(),
  ranges: none(),
  wanted: null, // a class or [low, high]
  undecided: false, // whether no outcome is declared as wanted, and none was chosen yet
  left: new Set(), // changes of alternatives that do not go into the letter
  saved: null, // what a record was kept of
  safe: null,
  method: "all",
  n: 1,
  answer: null, // {record, ms, looking}
  whatif: null, // {values, record}
  faults: none(), // field -> sentence
};

const ANY_OTHER = "any other";
const USUAL_MS = 5_000;
const listeners = new Map();

export function on(topics, listen) {
  for (const topic of topics.split(" ")) listeners.set(topic, [...(listeners.get(topic) ?? []), listen]);
}

export function notify(topic) {
  for (const listen of listeners.get(topic) ?? []) listen(topic);
}

export const features = () => state.schema?.features ?? [];
// Columns that are no features and that the model reads: it gets them as they are, as text.
const passed = () => (state.schema?.passthrough ?? []).map((one) => ({ ...one, kind: "text", change: "never", missing: !one.required }));
export const details = () => [...features(), ...passed().filter((one) => one.required)];
export const feature = (name) => details().find((one) => one.name === name);
export const mayChange = (one) => one.change !== "never";

export function start(schema) {
  Object.assign(state, { schema, person: null, picked: {}, values: {}, answer: null, whatif: null, faults: none(), saved: null });
  noLimits();
  state.undecided = (schema.target.wanted ?? null) === null;
  state.wanted = firstWanted(schema.target);
  state.n = 1;
}

function noLimits() {
  Object.assign(state, { frozen: new Set(), ranges: none(), left: new Set() });
}

// Where nothing is declared, something has to be sent to hear the decision; the page shows no alternatives for it.
function firstWanted(target) {
  if ((target.wanted ?? null) !== null) return target.wanted;
  if (target.kind !== "number") return ANY_OTHER;
  const low = target.low ?? 0, high = target.high ?? low + 1;
  const digits = Math.max(0, 2 - Math.floor(Math.log10(high - low || 1)));
  return [Number((low + 0.6 * (high - low)).toFixed(digits)), null];
}

// Another person: limits were set for the one before, and are gone.
export function setApplicant(person, values) {
  const known = Object.fromEntries([...features(), ...passed()].map((one) => [one.name, values[one.name] ?? null]));
  Object.assign(state, { person, picked: known, values: { ...known }, answer: null, whatif: null, faults: none(), saved: null });
  noLimits();
  notify("person");
}

export function asPicked() {
  Object.assign(state, { values: { ...state.picked }, faults: none() });
  notify("values");
}

export const edited = () => details().filter((one) => state.values[one.name] !== state.picked[one.name]).map((one) => one.name);

// What would be lost: details typed or edited and limits, unless a record of exactly them was kept.
const work = () => JSON.stringify([state.values, [...state.frozen], state.ranges]);
export const unsaved = () => state.person !== null && state.saved !== work() && (edited().length > 0 || state.frozen.size > 0 || Object.keys(state.ranges).length > 0);
export const markSaved = () => (state.saved = work());

export function setValue(name, value) {
  state.values[name] = value;
  delete state.faults[name];
  notify("values");
}

export function setFrozen(name, frozen) {
  if (frozen) state.frozen.add(name);
  else state.frozen.delete(name);
  notify("limits");
}

export function setRange(name, range) {
  if (range === null) delete state.ranges[name];
  else state.ranges[name] = range;
  delete state.faults[name];
  notify("limits");
}

export function setTarget(change) {
  if ("wanted" in change) state.undecided = false;
  Object.assign(state, change);
  notify("goal");
}

// Only these may change: everything else is locked.
export function lockAllBut(names) {
  state.frozen = new Set(features().filter((one) => mayChange(one) && !names.includes(one.name)).map((one) => one.name));
  notify("limits");
}

// An alternative is known by what it changes, so that it is the same after it was asked for again.
export const changesOf = (one) => JSON.stringify(one.changes.map(({ feature, to }) => [feature, to]));

export function choose(one, into) {
  if (into) state.left.delete(changesOf(one));
  else state.left.add(changesOf(one));
  notify("chosen");
}

// Between which values a number may go from the person's own, by the limits of the schema.
export function reach(one, own) {
  let [low, high] = [one.low, one.high];
  if (typeof own !== "number") return [low, high];
  const { up = Infinity, down = Infinity, percent = Infinity } = one.near ?? {};
  const by = (percent / 100) * Math.abs(own);
  [low, high] = [Math.max(Math.min(low, own), own - Math.min(down, by)), Math.min(Math.max(high, own), own + Math.min(up, by))];
  if (one.change === "up") low = Math.max(low, own);
  if (one.change === "down") high = Math.min(high, own);
  return [low, high];
}

// A row as the service takes it: a column that is no feature is left out where it is not known.
function row(values) {
  const unknown = new Set(passed().map((one) => one.name).filter((name) => (values[name] ?? null) === null));
  return Object.fromEntries(Object.entries(values).filter(([name]) => !unknown.has(name)));
}

// The body of a request to explain these values.
export function explainBody(values, changes = {}) {
  return {
    artifact: state.artifact,
    rows: [row(values)],
    method: state.method,
    n: state.n,
    target: state.wanted,
    freeze: [...state.frozen],
    ranges: state.ranges,
    robust: state.safe,
    diagnose: false,
    keep: false,
    ...changes,
    deadline_ms: Math.min(changes.deadline_ms ?? USUAL_MS, state.schema.limits?.deadline_ms ?? USUAL_MS),
  };
}
