// ServiceError in words, at the top of the page; and what a screen reader is told, when it has settled.
import { key } from "./api.js";
import { find, h } from "./dom.js";
import { icon } from "./icons.js";

let countdown = null, speaking = null;

export function announce(sentence) {
  clearTimeout(speaking);
  speaking = setTimeout(() => (find("live").textContent = sentence), 500);
}

// One notice at a time: what was typed stays where it is, and `again` asks once more.
export function showError(problem, again) {
  if (problem.kind === "key") return signIn(again, problem.status === 403);
  clearNotice();
  const words = h("p", {}, problem.message);
  const button = again ? h("button", { class: "button button-small", type: "button", onclick: () => { clearNotice(); again(); } }, "Try again") : null;
  const close = h("button", { class: "lock", type: "button", "aria-label": "Dismiss", onclick: clearNotice }, icon("cross", 15));
  find("notices").replaceChildren(h("div", { class: "notice", role: "alert", "data-kind": problem.kind }, icon("hint", 20), words, button, close));
  if (again && ["busy", "away", "late"].includes(problem.kind)) countDown(words, problem, again);
  return undefined;
}

function countDown(words, problem, again) {
  let left = Math.ceil(Math.min(Math.max(problem.retryAfter ?? 3, 1), 60));
  const tick = () => {
    words.textContent = `${problem.message} Asking again in ${left} s. What you typed is still here.`;
    if (left <= 0) {
      clearNotice();
      again();
    }
    left -= 1;
  };
  tick();
  countdown = setInterval(tick, 1000);
}

export function clearNotice() {
  clearInterval(countdown);
  countdown = null;
  find("notices").replaceChildren();
}

export function signIn(again, wrong = false) {
  const dialog = find("signin");
  if (dialog.open) return;
  const input = h("input", { class: "text", type: "password", id: "key", autocomplete: "off", spellcheck: "false", required: true, placeholder: "fce_…" });
  const had = key.get() !== null || wrong;
  const form = h("form", { method: "dialog" },
    h("h2", { id: "signin-heading" }, "Sign in"),
    h("p", {}, had ? "That key is not accepted here. Ask whoever runs this service for another." : "This service asks for an access key. It is kept for this tab only."),
    h("label", { for: "key", class: "field-label" }, "Access key"), input,
    h("div", { class: "actions" }, h("button", { class: "button button-primary", type: "submit" }, icon("key", 17), "Sign in")));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (!input.value.trim()) return;
    key.set(input.value.trim());
    dialog.close();
    document.dispatchEvent(new Event("signed"));
    again?.();
  });
  dialog.replaceChildren(form);
  dialog.showModal();
}
