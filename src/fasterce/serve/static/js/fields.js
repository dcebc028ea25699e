// Controls for one value of one feature, made from what the schema says of it.
import { fresh, h } from "./dom.js";
import { icon } from "./icons.js";
import { bare, inline, labelOf, plain, value as written, withUnit } from "./format.js";

export const unit = (feature) => (feature.whole ? 1 : 10 ** -(feature.decimals ?? 0));

// A step a hand can set: some two hundred of them across the range, 1, 2 or 5 times a power of ten, never below the unit.
export function sliderStep(feature, low, high) {
  const least = unit(feature), rough = (high - low) / 200;
  if (!(rough > least)) return least;
  const power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((times) => times * power).find((step) => step >= rough);
}

export function rounded(feature, value) {
  const digits = Math.max(0, feature.whole ? 0 : feature.decimals ?? 0);
  return Number(value.toFixed(Math.min(digits, 15)));
}

// What the column means, shown on request.
export function helpOf(feature) {
  if (!feature.help) return null;
  return h("details", { class: "help" }, h("summary", { "aria-label": `About ${named(feature)}` }, "?"), h("p", {}, feature.help));
}

// Why a typed number cannot be used, in the words of its column; null if it can.
export function outOfRange(feature, value) {
  if (feature.kind !== "numeric" || typeof value !== "number") return null;
  if (feature.whole && !Number.isInteger(value)) return "A whole number is needed here.";
  const [low, high] = [feature.low, feature.high];
  if (!feature.promised || (value >= low && value <= high)) return null;
  return `${labelOf(feature)} must be from ${bare(feature, low)} to ${written(feature, high)}; ${bare(feature, value)} is outside of that.`;
}

// {element, input, show(value), fault(sentence), note(sentence)}; `set(value)` hears of every change, undefined where it is no value.
export function editor(feature, set, { keep, slider = true, within } = {}) {
  const label = fresh("label"), problem = fresh("fault");
  const made = { numeric: () => numeric(feature, set, slider, within ?? [feature.low, feature.high]), time: () => time(feature, set), text: () => time(feature, set) }[feature.kind]?.() ?? categorical(feature, set);
  made.input.id = fresh("value");
  made.input.dataset.keep = keep ?? made.input.id;
  made.input.setAttribute("aria-describedby", problem);
  const fault = h("p", { class: "fault", id: problem, hidden: true });
  const name = h("label", { class: "field-label", id: label, for: made.input.id }, labelOf(feature), feature.unit ? " " : null, unitOf(feature));
  const note = h("p", { class: "field-note", hidden: true });
  const element = h("div", { class: `field field-${feature.kind}`, "data-feature": feature.name }, h("div", { class: "field-name" }, name, helpOf(feature)), made.control, note, fault);
  return {
    element,
    input: made.input,
    show: made.show,
    note(sentence) {
      note.hidden = !sentence;
      note.textContent = sentence ?? "";
    },
    fault(sentence) {
      fault.hidden = !sentence;
      fault.textContent = sentence ?? "";
      made.input.toggleAttribute("aria-invalid", Boolean(sentence));
      if (sentence) made.input.setAttribute("aria-invalid", "true");
    },
  };
}

const unitOf = (feature) => (feature.unit ? h("span", { class: "unit" }, withUnit(feature, "").trim()) : null);

function numeric(feature, set, withSlider, [low, high]) {
  const input = h("input", { class: "number", type: "number", step: "any", inputmode: feature.whole ? "numeric" : "decimal", autocomplete: "off" });
  const bounded = Number.isFinite(low) && Number.isFinite(high) && high > low;
  const step = bounded ? sliderStep(feature, low, high) : unit(feature);
  const slider = bounded && withSlider ? h("input", { class: "slider", type: "range", tabindex: -1, "aria-hidden": "true", min: low, max: high, step }) : null;
  const changed = (value) => {
    if (slider && value !== undefined && value !== null) paint(value);
    set(value);
  };
  const read = () => {
    if (input.value === "") return input.validity.badInput || !feature.missing ? undefined : null;
    const value = Number(input.value);
    return Number.isFinite(value) ? value : undefined;
  };
  const paint = (value) => {
    slider.value = value;
    slider.style.setProperty("--at", `${(100 * (Math.min(Math.max(value, low), high) - low)) / (high - low)}%`);
  };
  const by = (sign) => () => {
    const from = read() ?? feature.typical ?? low ?? 0;
    const to = rounded(feature, from + sign * Math.max(unit(feature), bounded ? sliderStep(feature, low, high) : unit(feature)));
    input.value = bounded ? Math.min(Math.max(to, Math.min(low, from)), Math.max(high, from)) : to;
    changed(read());
  };
  input.addEventListener("input", () => changed(read()));
  input.addEventListener("keydown", (event) => {
    const sign = { ArrowUp: 1, ArrowDown: -1 }[event.key];
    if (!sign) return;
    event.preventDefault();
    by(sign)();
  });
  slider?.addEventListener("input", () => {
    input.value = rounded(feature, Number(slider.value));
    changed(read());
  });
  const stepper = (name, sign) =>
    h("button", { class: "step", type: "button", tabindex: -1, "aria-hidden": "true", onclick: by(sign) }, icon(name, 14));
  const control = h("div", { class: "number-control" }, h("div", { class: "stepper" }, stepper("minus", -1), input, stepper("plus", 1)), slider);
  const show = (value) => {
    if (document.activeElement !== input || read() !== value) input.value = value === null || value === undefined ? "" : tidy(feature, value);
    if (slider) paint(value ?? low);
  };
  if (feature.missing) input.placeholder = "not known";
  return { control, input, show };
}

// A date has the browser's own control; other times, durations and columns that are no features are text.
function time(feature, set) {
  const input = h("input", { class: "number", type: feature.type === "date" ? "date" : "text", autocomplete: "off" });
  input.addEventListener("input", () => set(input.value || (feature.missing ? null : undefined)));
  const show = (value) => {
    if (document.activeElement !== input) input.value = value ?? "";
  };
  return { control: h("div", { class: "number-control" }, input), input, show };
}

// A number that came in single precision is shown as it was written.
function tidy(feature, value) {
  const near = rounded(feature, value);
  return Math.abs(near - value) <= 1e-6 * Math.abs(value) ? near : value;
}

function categorical(feature, set) {
  const input = h("select", { class: "select" });
  let choices = [];
  const fill = (extra) => {
    choices = [...feature.categories, ...(feature.missing ? [null] : []), ...extra];
    input.replaceChildren(...choices.map((choice, k) => h("option", { value: String(k) }, plain(choice))));
  };
  fill([]);
  input.addEventListener("change", () => set(choices[Number(input.value)]));
  const show = (value) => {
    let at = choices.indexOf(value ?? null);
    if (at < 0) {
      fill([value ?? null]);
      at = choices.length - 1;
    }
    input.value = String(at);
  };
  return { control: h("div", { class: "select-control" }, input, icon("down", 16)), input, show };
}

export const named = (feature) => inline(labelOf(feature));
