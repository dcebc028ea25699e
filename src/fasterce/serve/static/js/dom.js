// Elements made of text and attributes; nothing is ever parsed as HTML.
const SVG = "http://www.w3.org/2000/svg";

export const find = (id) => document.getElementById(id);

export function h(tag, given = {}, ...children) {
  return fill(document.createElement(tag), given, children);
}

export function svg(tag, given = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), given, children);
}

function fill(element, given, children) {
  for (const [name, value] of Object.entries(given)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value" && "value" in element) element.value = value;
    else if (name === "checked") element.checked = value;
    else if (name === "style") for (const [property, set] of Object.entries(value)) element.style.setProperty(property, set);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat(2).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

// New children in place of the old ones; whoever had the focus keeps it if there still is one of that name.
export function replace(parent, ...children) {
  const active = parent.contains(document.activeElement) ? document.activeElement : null;
  const name = active?.dataset?.keep;
  const caret = active?.matches?.("input[type=text]") ? active.selectionStart : null;
  parent.replaceChildren(...children.flat(2).filter(Boolean));
  if (!name) return;
  const again = parent.querySelector(`[data-keep="${CSS.escape(name)}"]`);
  again?.focus({ preventScroll: true });
  if (again && caret !== null) again.setSelectionRange(caret, caret);
}

let made = 0;
export const fresh = (word) => `${word}-${(made += 1)}`;
