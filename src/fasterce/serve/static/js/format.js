// Names, numbers and measures as people say them.
export const ARROW = "→";
export const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
export const METHODS = {
  all: { name: "Compare", title: "Side by side", about: "One of each kind, side by side" },
  closest: { name: "Closest", title: "Smallest step", about: "The smallest change" },
  sparse: { name: "Fewest", title: "Fewest changes", about: "As few details as possible" },
  realistic: { name: "Realistic", title: "Most like others", about: "Like people who have this outcome" },
};
export const SAFETY = [
  { share: null, name: "Any", about: "Not asked for" },
  { share: 0.8, name: "80 %", about: "Holds under 80 % of small differences" },
  { share: 0.95, name: "95 %", about: "Holds under 95 % of small differences" },
  { share: 0.99, name: "99 %", about: "Holds under 99 % of small differences" },
];
const SURE = 0.8;
const THIN = "\u202f"; // a narrow space at which no line ends

const capitalized = (text) => text[0].toUpperCase() + text.slice(1);

export function readable(name) {
  return capitalized(String(name).replaceAll("_", " ").trim() || String(name));
}

// A label of the wording file is made for sentences; here it stands at the head of a line.
export function labelOf(feature) {
  return feature.label && feature.label !== feature.name ? capitalized(feature.label) : readable(feature.name);
}

// Inside a sentence: "Duration" becomes "duration", an abbreviation stays.
export function inline(label) {
  return /^[A-Z][a-z]/.test(label) ? label[0].toLowerCase() + label.slice(1) : label;
}

export function number(value, decimals = 0) {
  const digits = Math.min(Math.max(decimals ?? 0, 0), 15);
  const useGrouping = Math.abs(value) >= 10000;
  return new Intl.NumberFormat("en", { maximumFractionDigits: digits, useGrouping }).format(value);
}

export function percent(share) {
  if (share > 0 && share < 0.005) return `<1${THIN}%`;
  if (share < 1 && share > 0.995) return `>99${THIN}%`;
  return `${Math.round(100 * share)}${THIN}%`;
}

export function value(feature, given) {
  if (given === null || given === undefined || given === "") return "not known";
  if (feature?.kind === "numeric" && typeof given === "number") return number(given, feature.decimals);
  return plain(given);
}

export function plain(given) {
  if (given === null || given === undefined) return "not known";
  if (given === true) return "yes";
  if (given === false) return "no";
  if (typeof given === "number") return number(given, 6);
  if (typeof given === "object") return String(given.text ?? JSON.stringify(given));
  return String(given).trim() === "" ? `'${given}'` : String(given);
}

export function outcome(schema, given) {
  const named = schema.target.labels?.[String(given)];
  if (named) return named;
  if (schema.target.kind === "number" && typeof given === "number") return amount(given);
  return plain(given);
}

// A predicted number: as many digits as matter.
export function amount(given) {
  const digits = given === 0 ? 0 : Math.max(0, 3 - Math.floor(Math.log10(Math.abs(given))));
  return number(given, Math.min(digits, 6));
}

export function difference(feature, from, to) {
  if (feature?.kind !== "numeric" || typeof from !== "number" || typeof to !== "number") return "";
  const by = to - from;
  return `${by > 0 ? "+" : "−"}${number(Math.abs(by), feature.decimals)}`;
}

export function count(n, one, many = `${one}s`) {
  return `${n} ${n === 1 ? one : many}`;
}

export function listed(parts) {
  return parts.length < 2 ? parts.join("") : `${parts.slice(0, -1).join(", ")} and ${parts.at(-1)}`;
}

export function effort(distance) {
  const word = distance < 0.5 ? "Small" : distance < 1.5 ? "Moderate" : distance < 3 ? "Large" : "Very large";
  return { word, text: "of all the steps one could take", share: distance / (distance + 1.5) };
}

export function realism(ratio, outcome) {
  const wanted = `“${outcome}”`;
  if (ratio === null || ratio === undefined) return null;
  const [word, text] =
    ratio <= 1.1 ? ["Usual", `as usual among people with ${wanted}`]
    : ratio <= 1.6 ? ["Fairly usual", `a little apart from people with ${wanted}`]
    : ratio <= 2.5 ? ["Unusual", `few people with ${wanted} are like this`]
    : ["Rare", `hardly anyone with ${wanted} is like this`];
  return { word, text, share: Math.min(1, 1 / Math.max(ratio, 0.01)) };
}

export function robustness(share) {
  if (share === null || share === undefined) return null;
  const word = share >= 0.95 ? "Very safe" : share >= SURE ? "Safe" : share >= 0.6 ? "Shaky" : "Fragile";
  return { word, text: share === 1 ? "holds under every small difference tried" : `holds under ${percent(share)} of small differences`, share, sure: share >= SURE };
}
