// Light or dark: as the system says, until someone chooses.
import { h } from "./dom.js";
import { icon } from "./icons.js";
import * as urlState from "./url_state.js";

const dark = matchMedia("(prefers-color-scheme: dark)");
const now = () => document.documentElement.dataset.theme ?? (dark.matches ? "dark" : "light");

export function themeButton() {
  const button = h("button", { class: "lock", type: "button", id: "theme" });
  const show = () => {
    const is = now() === "dark";
    button.replaceChildren(icon(is ? "sun" : "moon", 18));
    button.setAttribute("aria-label", is ? "Light theme" : "Dark theme");
    button.title = is ? "Light theme" : "Dark theme";
  };
  button.addEventListener("click", () => {
    const next = now() === "dark" ? "light" : "dark";
    document.documentElement.dataset.theme = next;
    urlState.put("theme", next);
    show();
  });
  dark.addEventListener("change", show);
  show();
  return button;
}
