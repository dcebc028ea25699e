// A half circle: how far the score is, what is needed, and where the alternatives would be.
import { distinct } from "./cards.js";
import { svg } from "./dom.js";
import { state } from "./state.js";
import { amount, LETTERS, outcome, percent } from "./format.js";

const RADIUS = 84, MIDDLE = [110, 104];
const LONG_LABEL = 18;

const point = (share, radius) => {
  const angle = Math.PI * (1 - Math.min(Math.max(share, 0), 1));
  return [MIDDLE[0] + radius * Math.cos(angle), MIDDLE[1] - radius * Math.sin(angle)].map((at) => at.toFixed(2));
};

const arc = (from, to, radius = RADIUS) => `M${point(from, radius).join(" ")} A${radius} ${radius} 0 0 1 ${point(to, radius).join(" ")}`;

// What a gauge shows of a record: null where the model gives no scores.
export function reading(record, schema) {
  const score = record.outcome.score;
  if (!score) return null;
  return score.kind === "number" ? ofNumber(record, schema, score) : ofChance(record, schema, score);
}

function ofNumber(record, schema, score) {
  const goal = record.target ?? {};
  const ends = [schema.target.low, schema.target.high, score.value, goal.low, goal.high, ...record.counterfactuals.map((one) => one.score?.value)].filter(Number.isFinite);
  const low = Math.min(...ends), high = Math.max(...ends), span = high - low || 1;
  const share = (value) => (value - low) / span;
  return {
    share: share(score.value),
    text: amount(score.value),
    label: "predicted",
    band: state.undecided ? null : [goal.low === null || goal.low === undefined ? 0 : share(goal.low), goal.high === null || goal.high === undefined ? 1 : share(goal.high)],
    tick: null,
    marks: state.undecided ? [] : distinct(record).map((one) => share(one.score.value)),
    said: `The model predicts ${amount(score.value)}.`,
  };
}

export const chanceOf = (score, label) => {
  const at = score?.classes?.findIndex((one) => JSON.stringify(one) === JSON.stringify(label)) ?? -1;
  return at < 0 ? null : score.values[at];
};

function ofChance(record, schema, score) {
  const other = record.target?.kind === "any other" || !record.target;
  const about = other ? record.outcome.prediction : record.target.class;
  const share = chanceOf(score, about);
  if (share === null) return null;
  const two = score.classes.length === 2;
  const rest = Math.max(...score.values.filter((_, k) => JSON.stringify(score.classes[k]) !== JSON.stringify(about)));
  const wanted = record.target?.kind === "chance" ? record.target.low : null;
  const tick = wanted ?? (two ? record.outcome.threshold ?? 0.5 : other ? null : rest);
  const named = outcome(schema, about);
  return {
    share,
    text: percent(share),
    label: `chance of ${named}`,
    band: null,
    tick,
    needed: tick === null ? null : two || wanted !== null ? `${percent(tick)} needed` : `${percent(tick)} is ahead`,
    marks: state.undecided ? [] : distinct(record).map((one) => chanceOf(one.score, about)),
    said: `${percent(share)} chance of ${named}${tick === null ? "" : two || wanted !== null ? `, ${percent(tick)} needed` : `, another is ahead with ${percent(tick)}`}.`,
  };
}

export function gauge(read, { marks = true, small = false } = {}) {
  const parts = [svg("path", { class: "gauge-track", d: arc(0, 1) })];
  if (read.band) parts.push(svg("path", { class: "gauge-band", d: arc(...read.band, RADIUS + 12) }));
  if (read.share > 0.004) parts.push(svg("path", { class: "gauge-fill", d: arc(0, read.share), pathLength: 1 }));
  if (read.tick !== null) {
    const [x1, y1] = point(read.tick, RADIUS - 13), [x2, y2] = point(read.tick, RADIUS + 9);
    parts.push(svg("line", { class: "gauge-tick", x1, y1, x2, y2 }));
  }
  if (marks) parts.push(...marksOf(read));
  parts.push(svg("text", { class: "gauge-value", x: MIDDLE[0], y: MIDDLE[1] - 22 }, read.text));
  parts.push(...labelOf(read.label));
  return svg("svg", { class: small ? "gauge gauge-small" : "gauge", viewBox: "0 0 220 122", role: "img", "aria-label": read.said }, parts);
}

// A long label takes two lines, so that it stays within the half circle.
function labelOf(label) {
  const at = label.length > LONG_LABEL ? label.lastIndexOf(" ", LONG_LABEL) : -1;
  const lines = at > 0 ? [label.slice(0, at), label.slice(at + 1)] : [label];
  return lines.map((line, k) => svg("text", { class: "gauge-label", x: MIDDLE[0], y: MIDDLE[1] + 15 * k }, line));
}

// Letters on the outside; those that would lie on each other are moved apart.
function marksOf(read) {
  const known = read.marks.map((share, k) => ({ share, letter: LETTERS[k] })).filter((one) => one.share !== null && one.share !== undefined).slice(0, 6);
  known.sort((one, other) => one.share - other.share);
  let last = -1;
  return known.map((one) => {
    const at = Math.min(Math.max(one.share, last + 0.055), 1);
    last = at;
    const [cx, cy] = point(one.share, RADIUS), [x, y] = point(at, RADIUS + (read.band ? 25 : 20));
    return svg("g", { class: "gauge-mark" }, svg("circle", { cx, cy, r: 3 }), svg("text", { x, y }, one.letter));
  });
}
