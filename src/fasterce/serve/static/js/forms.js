// Parts of forms and dialogs.
import { h } from "./dom.js";
import { icon } from "./icons.js";

// A labelled field of a form; {element, input}.
export function field(label, { id, value = "", lines = 1, required = false, about = null }) {
  const note = about ? `${id}-note` : null;
  const input = h(lines > 1 ? "textarea" : "input", { class: "text", id, required, rows: lines > 1 ? lines : null, autocomplete: "off", spellcheck: "false", maxlength: lines > 1 ? 1000 : 200, "aria-describedby": note });
  input.value = value;
  const element = h("div", { class: "form-field" }, h("label", { class: "field-label", for: id }, label, required ? null : h("span", { class: "optional" }, "optional")), input, about ? h("p", { class: "field-note", id: note }, about) : null);
  return { element, input };
}

// The heading of a dialog, with a button that closes it.
export function head(title, dialog, ...below) {
  const close = h("button", { class: "lock", type: "button", "aria-label": "Close", onclick: () => dialog.close() }, icon("cross", 18));
  return h("div", { class: "section-head" }, h("div", {}, h("h2", { id: `${dialog.id}-heading` }, title), below), close);
}
