// What may change: a lock and a range or a choice of categories for every feature.
import { fresh, h } from "./dom.js";
import { helpOf, sliderStep, named, rounded } from "./fields.js";
import { icon } from "./icons.js";
import { features, lockAllBut, setFrozen, mayChange, none, on, reach, setRange, state } from "./state.js";
import { bare, count, labelOf, listed, plain, value } from "./format.js";

// How the schema lets a number change, in a few words.
function wayOf(feature) {
  const near = feature.near ?? {}, parts = [];
  if (near.up !== undefined && feature.change !== "down") parts.push(`up by at most ${value(feature, near.up)}`);
  if (near.down !== undefined && feature.change !== "up") parts.push(`down by at most ${value(feature, near.down)}`);
  if (near.percent !== undefined) parts.push(`by at most ${near.percent} %`);
  if (feature.change === "up" && near.up === undefined) parts.unshift("only up");
  if (feature.change === "down" && near.down === undefined) parts.unshift("only down");
  return parts.length ? listed(parts) : null;
}

export function lockButton(feature, keep, small = false) {
  const button = h("button", { class: small ? "lock lock-small" : "lock", type: "button", "data-keep": keep, "data-lock": feature.name });
  button.addEventListener("click", () => setFrozen(feature.name, !state.frozen.has(feature.name)));
  showLock(button, feature);
  return button;
}

export function showLock(button, feature) {
  const frozen = state.frozen.has(feature.name);
  button.setAttribute("aria-pressed", String(frozen));
  button.setAttribute("aria-label", `Keep ${named(feature)} as it is`);
  button.title = frozen ? "May not change" : "Keep as it is";
  button.replaceChildren(icon(frozen ? "lock" : "unlock", 16));
}

// One line a feature; {element, show()} for all of them.
export function limitsPanel() {
  const free = features().filter(mayChange), fixed = features().filter((one) => !mayChange(one));
  const lines = free.map(limit);
  const policy = fixed.length
    ? h("details", { class: "policy" }, h("summary", {}, `${count(fixed.length, "detail")} fixed by policy`), h("ul", {}, fixed.map((one) => h("li", {}, icon("lock", 14), labelOf(one)))))
    : null;
  const constraints = state.schema.constraints?.length
    ? h("details", { class: "policy" }, h("summary", {}, `${count(state.schema.constraints.length, "constraint")} always in force`), h("ul", {}, state.schema.constraints.map((constraint) => h("li", {}, readableConstraint(constraint)))))
    : null;
  const clear = h("button", { class: "quiet", type: "button", id: "clear-limits", onclick: clearAll }, icon("back", 15), "Lift all limits");
  const lockAll = h("button", { class: "quiet", type: "button", id: "lock-all", onclick: () => lockAllBut([]) }, icon("lock", 15), "Lock all");
  const only = h("p", { class: "limits-only" });
  const element = h("div", { class: "limits" }, h("div", { class: "limits-bar" }, lockAll, clear), only, lines.map((line) => line.element), policy, constraints);
  const show = () => {
    lines.forEach((line) => line.show());
    clear.hidden = !limitCount();
    lockAll.hidden = state.frozen.size === free.length;
    const open = free.filter((one) => !state.frozen.has(one.name));
    only.hidden = state.frozen.size === 0;
    only.textContent = !open.length ? "Nothing may change: unlock what may." : open.length <= 5 ? `Only these may change: ${listed(open.map(named))}.` : `${open.length} of ${free.length} details may change.`;
  };
  show();
  return { element, show };
}

// A constraint's sentence with the names people know in place of the columns'.
export function readableConstraint(constraint) {
  const known = features().filter((one) => String(constraint).includes(one.name)).sort((one, other) => other.name.length - one.name.length);
  return known.reduce((text, one) => text.replaceAll(one.name, labelOf(one)), plain(constraint));
}

export const limitCount = () => state.frozen.size + Object.keys(state.ranges).filter((name) => !state.frozen.has(name)).length;

export function clearAll() {
  state.ranges = none();
  state.frozen.clear();
  setRange("", null);
}

function limit(feature) {
  const lock = lockButton(feature, `lock-${feature.name}`);
  const narrow = feature.kind === "categorical" ? chosen(feature) : between(feature);
  const words = feature.kind === "numeric" ? wayOf(feature) : { up: "only up", down: "only down" }[feature.change];
  const way = words ? h("p", { class: "limit-way" }, icon("lock", 12), words) : null;
  const fault = h("p", { class: "fault", hidden: true });
  const head = h("div", { class: "limit-head" }, h("span", { class: "field-label" }, labelOf(feature)), helpOf(feature), narrow.says, lock);
  const element = h("div", { class: "limit", "data-feature": feature.name }, head, way, narrow.element, fault);
  const show = () => {
    const frozen = state.frozen.has(feature.name);
    element.classList.toggle("is-frozen", frozen);
    showLock(lock, feature);
    narrow.show(frozen);
    fault.textContent = state.faults[`ranges.${feature.name}`] ?? "";
    fault.hidden = !fault.textContent;
  };
  return { element, show };
}

// Two native sliders on one track, so that keys, touch and screen readers work as they always do. They end where the schema
// lets the person's own value go: nothing can be allowed that would never be proposed.
function between(feature) {
  const says = h("output", { class: "limit-says" });
  const known = Number.isFinite(feature.low) && Number.isFinite(feature.high) && feature.high > feature.low;
  if (!known) return { element: null, says, show: (frozen) => (says.textContent = frozen ? "stays as it is" : "any") };
  let low, high, ends;
  const inside = (given) => rounded(feature, Math.min(Math.max(given, ends[0]), ends[1]));
  const thumb = (which) => h("input", { type: "range", class: `thumb thumb-${which}`, "data-keep": `${which}-${feature.name}`, "aria-label": `${labelOf(feature)}, ${which} allowed` });
  const least = thumb("lowest"), most = thumb("highest");
  const own = h("span", { class: "own", "aria-hidden": "true" });
  const track = h("div", { class: "between", role: "group", "aria-label": `${labelOf(feature)}, allowed range` }, h("span", { class: "between-fill" }), own, least, most);
  const changed = (moved) => {
    if (Number(least.value) > Number(most.value)) (moved === least ? least : most).value = (moved === least ? most : least).value;
    const range = [inside(Number(least.value)), inside(Number(most.value))];
    setRange(feature.name, range[0] <= ends[0] && range[1] >= ends[1] ? null : range);
  };
  least.addEventListener("input", () => changed(least));
  most.addEventListener("input", () => changed(most));
  const share = (given) => `${(100 * (Math.min(Math.max(given, low), high) - low)) / (high - low)}%`;
  const scale = () => {
    ends = reach(feature, state.values[feature.name]);
    const step = sliderStep(feature, ...ends);
    [low, high] = [Math.floor(ends[0] / step) * step, Math.ceil(ends[1] / step) * step];
    for (const one of [least, most]) Object.assign(one, { min: low, max: high, step });
  };
  const show = (frozen) => {
    scale();
    const fixed = ends[1] <= ends[0];
    track.hidden = fixed;
    says.classList.toggle("is-set", feature.name in state.ranges || frozen);
    if (fixed || frozen) says.textContent = "stays as it is";
    if (fixed) return;
    const [from, to] = (state.ranges[feature.name] ?? ends).map(inside);
    least.value = from === ends[0] ? low : from;
    most.value = to === ends[1] ? high : to;
    least.disabled = most.disabled = frozen;
    least.setAttribute("aria-valuetext", value(feature, from));
    most.setAttribute("aria-valuetext", value(feature, to));
    // Where both thumbs are at the right end, the left one must be on top to be taken hold of.
    least.classList.toggle("on-top", Number(least.value) > (low + high) / 2);
    track.style.setProperty("--from", share(from));
    track.style.setProperty("--to", share(to));
    const mine = state.values[feature.name];
    own.hidden = typeof mine !== "number";
    if (!own.hidden) track.style.setProperty("--own", share(mine));
    if (!frozen) says.textContent = `${bare(feature, from)} – ${value(feature, to)}`;
  };
  return { element: track, says, show };
}

function chosen(feature) {
  const says = h("output", { class: "limit-says" });
  const group = fresh("choices");
  const boxes = feature.categories.map((category) => {
    const box = h("input", { type: "checkbox", class: "chip-box", checked: true, "data-keep": `chip-${feature.name}-${plain(category)}` });
    box.addEventListener("change", () => changed(box));
    return { box, category, chip: h("label", { class: "chip" }, box, h("span", {}, icon("check", 13), plain(category))) };
  });
  const changed = (box) => {
    const kept = boxes.filter((one) => one.box.checked).map((one) => one.category);
    if (!kept.length) box.checked = true;
    else setRange(feature.name, kept.length === boxes.length ? null : kept);
  };
  const summary = h("summary", {}, icon("down", 14), h("span", {}, "Choose what is allowed"), h("span", { class: "visually-hidden" }, ` for ${named(feature)}`));
  const element = h("details", { class: "choices" }, summary, h("div", { class: "chips", role: "group", id: group, "aria-label": `${labelOf(feature)}, allowed` }, boxes.map((one) => one.chip)));
  const show = (frozen) => {
    const kept = state.ranges[feature.name] ?? feature.categories;
    for (const one of boxes) {
      one.box.checked = kept.includes(one.category);
      one.box.disabled = frozen;
    }
    says.classList.toggle("is-set", frozen || kept.length < boxes.length);
    says.textContent = frozen ? "stays as it is" : kept.length < boxes.length ? `${kept.length} of ${boxes.length}` : `any of ${boxes.length}`;
  };
  return { element, says, show };
}

on("limits", () => {
  for (const button of document.querySelectorAll("[data-lock]")) {
    const feature = features().find((one) => one.name === button.dataset.lock);
    if (feature) showLock(button, feature);
  }
});
