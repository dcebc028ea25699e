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
  wanted: null, // a class, [low, high], or null for the other one
  safe: null,
  method: "all",
  n: 1,
  answer: null, // {record, ms, looking}
  whatif: null, // {values, record}
  faults: none(), // field -> sentence
};

const USUAL_MS = 5_000;
const listeners = new Map();

export function on(topics, listen) {
  for (const topic of topics.split(" ")) listeners.set(topic, [...(listeners.get(topic) ?? []), listen]);
}

export function notify(topic) {
  for (const listen of listeners.get(topic) ?? []) listen(topic);
}

export const features = () => state.schema?.features ?? [];
export const feature = (name) => features().find((one) => one.name === name);
export const mayChange = (one) => one.change !== "never";

export function start(schema) {
  Object.assign(state, { schema, person: null, picked: {}, values: {}, ranges: none(), answer: null, whatif: null, faults: none() });
  state.frozen = new Set();
  state.wanted = firstWanted(schema.target);
  state.n = 1;
}

function firstWanted(target) {
  if (target.wanted !== undefined && target.wanted !== null) return target.wanted;
  if (target.kind !== "number") return target.classes.length > 2 ? "any other" : null;
  const low = target.low ?? 0, high = target.high ?? low + 1;
  const digits = Math.max(0, 2 - Math.floor(Math.log10(high - low || 1)));
  return [Number((low + 0.6 * (high - low)).toFixed(digits)), null];
}

export function setApplicant(person, values) {
  const known = Object.fromEntries(features().map((one) => [one.name, values[one.name] ?? null]));
  Object.assign(state, { person, picked: known, values: { ...known }, answer: null, whatif: null, faults: none() });
  notify("person");
}

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
  Object.assign(state, change);
  notify("goal");
}

// The body of a request to explain these values.
export function explainBody(values, changes = {}) {
  return {
    artifact: state.artifact,
    rows: [values],
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
