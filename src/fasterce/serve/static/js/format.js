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
  return new Intl.NumberFormat("en", { maximumFractionDigits: digits }).format(value);
}

// A number by the format of its column: ",.2f", ".1%", "d"; without one, with its decimals and separated thousands.
export function formatted(feature, given) {
  const [, group, places, type] = /^(,?)(?:\.(\d+))?([df%]?)$/.exec(feature.format ?? "") ?? [];
  if (!feature.format) return number(given, feature.decimals);
  const decimals = places === undefined ? (type === "d" ? 0 : Math.max(feature.decimals - (type === "%" ? 2 : 0), 0)) : Number(places);
  const digits = Math.min(decimals, 15), scaled = type === "%" ? 100 * given : given;
  const written = new Intl.NumberFormat("en", { maximumFractionDigits: digits, minimumFractionDigits: places === undefined ? 0 : digits, useGrouping: Boolean(group) }).format(scaled);
  return type === "%" ? `${written}${THIN}%` : written;
}

// Of "month|months" the first word is for one.
export function withUnit(feature, written) {
  const [one, many] = (feature?.unit ?? "").split("|");
  const word = many && written !== "1" ? many : one;
  return word ? `${written}\u00a0${word}` : written;
}

export function percent(share) {
  if (share > 0 && share < 0.005) return `<1${THIN}%`;
  if (share < 1 && share > 0.995) return `>99${THIN}%`;
  return `${Math.round(100 * share)}${THIN}%`;
}

export function value(feature, given) {
  if (given === null || given === undefined || given === "") return "not known";
  if (feature?.kind === "numeric" && typeof given === "number") return withUnit(feature, formatted(feature, given));
  return plain(given);
}

// Without its unit, where the unit stands beside it.
export const bare = (feature, given) => (feature?.kind === "numeric" && typeof given === "number" ? formatted(feature, given) : value(feature, given));

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
  return `${by > 0 ? "+" : "−"}${formatted(feature, Math.abs(by))}`;
}

export function count(n, one, many = `${one}s`) {
  return `${n} ${n === 1 ? one : many}`;
}

export function listed(parts) {
  return parts.length < 2 ? parts.join("") : `${parts.slice(0, -1).join(", ")} and ${parts.at(-1)}`;
}

// How large a change is beside those of others; `efforts` are quantiles of their distances, least first.
export function effort(distance, efforts) {
  if (!efforts) {
    const word = distance < 0.5 ? "Small" : distance < 1.5 ? "Moderate" : distance < 3 ? "Large" : "Very large";
    const text = distance < 0.1 ? "far less than changing one category outright" : `about ${number(distance, 1)} times as much as changing one category outright`;
    return { word, text, share: distance / (distance + 1.5) };
  }
  const larger = efforts.filter((one) => one > distance).length / efforts.length;
  const word = larger >= 0.66 ? "Small" : larger >= 0.33 ? "Moderate" : larger > 0.05 ? "Large" : "Very large";
  const text = larger >= 0.5 ? `a smaller step than ${percent(Math.min(larger, 0.99))} of the alternatives found for others` : `a larger step than ${percent(Math.min(1 - larger, 0.99))} of the alternatives found for others`;
  return { word, text, share: Math.max(1 - larger, 0.03) };
}

// How far the nearest known person with the outcome is, beside how far such people are from each other.
export function realism(ratio, outcome) {
  const wanted = `“${outcome}”`;
  if (ratio === null || ratio === undefined) return null;
  const word = ratio <= 1.1 ? "Usual" : ratio <= 1.6 ? "Fairly usual" : ratio <= 2.5 ? "Unusual" : "Rare";
  const text = ratio <= 1.1
    ? `the nearest known person with ${wanted} is as near as usual`
    : `the nearest known person with ${wanted} is ${number(ratio, 1)} times as far away as usual`;
  return { word, text, share: Math.min(1, 1 / Math.max(ratio, 0.01)) };
}

export function robustness(share) {
  if (share === null || share === undefined) return null;
  const word = share >= 0.95 ? "Very safe" : share >= SURE ? "Safe" : share >= 0.6 ? "Less safe" : "Fragile";
  return { word, text: share === 1 ? "holds under every small difference tried" : `holds under ${percent(share)} of small differences`, share, sure: share >= SURE };
}

// A moment of the clock, as people write it.
export const when = (time) => new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "short" }).format(new Date(time));
