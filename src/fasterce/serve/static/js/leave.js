// A warning before details and limits are lost.
import { find, h } from "./dom.js";
import { icon } from "./icons.js";
import { limitCount } from "./limits.js";
import { edited, state, unsaved } from "./state.js";
import { count, listed } from "./format.js";

// Go on at once if nothing is lost, else when it is confirmed.
export function leaving(then) {
  if (!unsaved()) {
    then();
    return;
  }
  const dialog = find("leave"), n = edited().length, limits = limitCount();
  const lost = listed([n ? `${count(n, "edited detail")}` : null, limits ? count(limits, "limit") : null].filter(Boolean));
  const who = state.person.typed ? "the person typed in" : `person ${state.person.id}`;
  dialog.replaceChildren(
    h("h2", { id: "leave-heading" }, "Nothing of this is kept yet"),
    h("p", {}, `${lost} of ${who} will be lost.`),
    h("div", { class: "actions" },
      h("button", { class: "button button-primary", type: "button", id: "stay", onclick: () => dialog.close() }, icon("back", 17), "Stay"),
      h("button", { class: "button", type: "button", id: "discard", onclick: () => { dialog.close(); then(); } }, icon("cross", 17), "Go on without them")));
  dialog.showModal();
}

// Closing the tab: the browser asks in its own words.
window.addEventListener("beforeunload", (event) => {
  if (unsaved()) event.preventDefault();
});
