// The work in this tab, by artifact: it survives a reload, is in no address, and goes with the tab or when signing out.
import { none, on, state } from "./state.js";

const KEY = "fasterce-work";
const PARTS = ["person", "picked", "values", "ranges", "wanted", "undecided", "safe", "method", "n", "saved"];

const read = () => {
  try {
    return JSON.parse(sessionStorage.getItem(KEY)) ?? {};
  } catch {
    return {};
  }
};

function save() {
  if (!state.schema) return;
  const work = Object.fromEntries(PARTS.map((part) => [part, state[part]]));
  const all = { ...read(), [state.artifact]: { ...work, frozen: [...state.frozen], left: [...state.left], digest: state.schema.digests?.artifact } };
  sessionStorage.setItem(KEY, JSON.stringify(all));
}

// Whether there was work on this very artifact, which then is as it was.
export function restore() {
  const work = read()[state.artifact];
  if (!work || work.digest !== state.schema.digests?.artifact) return false;
  Object.assign(state, Object.fromEntries(PARTS.filter((part) => part in work).map((part) => [part, work[part]])));
  Object.assign(state, { ranges: Object.assign(none(), work.ranges), frozen: new Set(work.frozen), left: new Set(work.left) });
  return state.person !== null;
}

export const forget = () => sessionStorage.removeItem(KEY);

on("person values limits goal chosen saved", save);
