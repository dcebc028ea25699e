// What is wanted: the outcome, how safe, which kind of answer, how many.
import { find, fresh, h, replace } from "./dom.js";
import { sliderStep } from "./fields.js";
import { icon } from "./icons.js";
import { on, setTarget, state } from "./state.js";
import { amount, METHODS, outcome, SAFETY } from "./format.js";

const MOST_SHOWN = 6;
const MOST_BUTTONS = 4;

// Radios that look like one switch; each choice is {value, name, about}.
function segmented(legend, choices, chosen, choose) {
  const group = fresh("group");
  const parts = choices.map((one) => {
    const input = h("input", { type: "radio", name: group, class: "segment-box", checked: same(one.value, chosen), "data-keep": `${legend}-${one.name}`, onchange: () => choose(one.value) });
    return h("label", { class: "segment", title: one.about }, input, h("span", {}, one.name));
  });
  return h("fieldset", { class: "control" }, h("legend", {}, legend), h("div", { class: "segments" }, parts));
}

const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);

function dropdown(legend, choices, chosen, choose) {
  const id = fresh("choice");
  const none = chosen === null ? h("option", { value: "-1" }, "Choose …") : null;
  const input = h("select", { class: "select", id, "data-keep": legend, onchange: () => input.value !== "-1" && choose(choices[Number(input.value)].value) }, none, choices.map((one, k) => h("option", { value: String(k) }, one.name)));
  input.value = String(choices.findIndex((one) => same(one.value, chosen)));
  return h("div", { class: "control" }, h("label", { for: id }, legend), h("div", { class: "select-control" }, input, icon("down", 16)));
}

function wanted() {
  const { target } = state.schema;
  if (target.kind === "number") return wantedRange(target);
  const declared = (target.wanted ?? null) !== null;
  const classes = target.classes.filter((one) => !declared || !target.unwanted?.some((other) => same(one, other)));
  const choices = classes.map((one) => ({ value: one, name: outcome(state.schema, one) }));
  // What is declared and has no alternative is said, not asked for.
  if (declared && (target.classes.length === 2 || choices.length === 1)) {
    return h("div", { class: "control" }, h("span", { class: "legend" }, "Outcome wanted"), h("p", { class: "wanted", id: "wanted" }, icon("yes", 17), outcome(state.schema, target.wanted)));
  }
  const chosen = state.undecided ? null : state.wanted;
  return (choices.length > MOST_BUTTONS ? dropdown : segmented)("Outcome wanted", choices, chosen, (value) => setTarget({ wanted: value }));
}

function wantedRange(target) {
  const ends = [target.low ?? 0, target.high ?? (target.low ?? 0) + 1], step = sliderStep({ decimals: 6 }, ...ends);
  const low = Math.floor(ends[0] / step) * step, high = Math.ceil(ends[1] / step) * step;
  const says = h("output", { class: "limit-says is-set" });
  const thumb = (which, at) => h("input", { type: "range", class: `thumb thumb-${which}`, min: low, max: high, step, value: state.wanted[at] ?? ends[at], "aria-label": `Outcome wanted, ${which}`, "data-keep": `wanted-${which}` });
  const least = thumb("lowest", 0), most = thumb("highest", 1);
  const track = h("div", { class: "between", role: "group", "aria-label": "Outcome wanted" }, h("span", { class: "between-fill" }), least, most);
  const share = (value) => `${(100 * (value - low)) / (high - low)}%`;
  const show = () => {
    const [from, to] = [Number(least.value), Number(most.value)];
    track.style.setProperty("--from", share(from));
    track.style.setProperty("--to", share(to));
    least.classList.toggle("on-top", from > (low + high) / 2);
    says.classList.toggle("is-set", !state.undecided);
    says.textContent = state.undecided ? "not chosen yet" : to >= high ? `at least ${amount(from)}` : from <= low ? `at most ${amount(to)}` : `${amount(from)} – ${amount(to)}`;
  };
  const changed = (moved) => {
    if (Number(least.value) > Number(most.value)) (moved === least ? least : most).value = (moved === least ? most : least).value;
    const open = [Number(least.value) <= low, Number(most.value) >= high];
    setTarget({ wanted: open[0] && open[1] ? [low, null] : [open[0] ? null : Number(least.value), open[1] ? null : Number(most.value)] });
    show();
  };
  least.addEventListener("input", () => changed(least));
  most.addEventListener("input", () => changed(most));
  show();
  return h("div", { class: "control control-range" }, h("div", { class: "limit-head" }, h("span", { class: "legend" }, "Outcome wanted"), says), track);
}

function howMany() {
  const most = Math.min(state.schema.limits?.n ?? MOST_SHOWN, state.method === "all" ? 3 : MOST_SHOWN);
  const id = fresh("many");
  const by = (step) => () => setTarget({ n: Math.min(Math.max(state.n + step, 1), most) });
  const button = (name, step, label) => h("button", { class: "step", type: "button", "aria-label": label, "data-keep": label, "aria-disabled": String(step < 0 ? state.n <= 1 : state.n >= most), onclick: by(step) }, icon(name, 14));
  return h("div", { class: "control", role: "group", "aria-labelledby": id },
    h("span", { class: "legend", id }, state.method === "all" ? "Of each kind" : "How many"),
    h("div", { class: "stepper stepper-small" }, button("minus", -1, "Fewer alternatives"), h("output", { class: "many" }, String(state.n)), button("plus", 1, "More alternatives")));
}

export function showTarget() {
  const kinds = Object.entries(METHODS).map(([value, one]) => ({ value, name: one.name, about: one.about }));
  const safety = SAFETY.map((one) => ({ value: one.share, name: one.name, about: one.about }));
  replace(
    find("goal"),
    h("h2", { id: "goal-heading", class: "visually-hidden" }, "What is wanted"),
    wanted(),
    segmented("How safe", safety, state.safe, (safe) => setTarget({ safe })),
    segmented("Kind of answer", kinds, state.method, (method) => setTarget({ method, n: method === "all" ? 1 : 3 })),
    howMany(),
  );
}

on("goal", () => {
  if (!find("goal").contains(document.activeElement) || !document.activeElement.matches(".thumb")) showTarget();
});
