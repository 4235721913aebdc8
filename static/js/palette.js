// Command palette (Ctrl K): type to find, arrows to choose, Enter to open, Ctrl Enter to ask in the
// chat. Commands are found here, all else by the server, which is asked once the typing rests. The
// field's form of htmx drops an older request for a newer one.
import { openDialog } from "./layers.js";

const dialog = document.getElementById("palette");
const input = dialog?.querySelector("[data-palette-input]");
const found = document.getElementById("palette-found");
const status = document.getElementById("palette-status");
const options = () => [...dialog.querySelectorAll("[role=option]")];
const visible = () => options().filter((option) => !option.hidden);
const text = () => input.value.trim();
let waiting = false; // for the answer to what was typed
let wanted = false; // Enter was pressed meanwhile
let failure = ""; // of the last request

function mark(option) {
  for (const each of options()) {
    each.classList.toggle("is-current", each === option);
    each.setAttribute("aria-selected", each === option);
  }
  if (option) input.setAttribute("aria-activedescendant", option.id);
  else input.removeAttribute("aria-activedescendant");
  option?.scrollIntoView({ block: "nearest" });
}

const marked = () => visible().find((option) => option.classList.contains("is-current"));

function tell() {
  const count = visible().filter((option) => !("always" in option.dataset)).length;
  const missing = found.querySelector("[data-missing]")?.dataset.missing;
  const pending = waiting || found.querySelector("[data-pending]");
  if (failure) status.textContent = failure;
  else if (!text()) status.textContent = "";
  else if (pending) status.textContent = "Searching…";
  else status.textContent = (count ? `${count} found` : `Nothing matches “${text()}”`) + (missing ? `. Not searched: ${missing}` : "");
}

function narrow() {
  const words = text().toLowerCase();
  const commands = dialog.querySelector("[data-palette-commands]");
  for (const option of commands.querySelectorAll("[role=option]")) option.hidden = !option.textContent.toLowerCase().includes(words);
  commands.hidden = !commands.querySelector("[role=option]:not([hidden])");
  waiting = Boolean(words);
  failure = "";
  wanted = false;
  if (!words) found.replaceChildren();
  mark(visible()[0]);
  tell();
}

export function openPalette() {
  if (!dialog || dialog.open) return;
  input.value = "";
  narrow();
  openDialog(dialog);
}

// The question goes along in the session of this tab: an address alone must not ask anything.
function ask() {
  const question = text();
  if (!question) return;
  sessionStorage.setItem("ask", question);
  location.assign(`/chat?q=${encodeURIComponent(question)}`);
}

input?.addEventListener("input", narrow);
input?.addEventListener("keydown", (event) => {
  const list = visible();
  const at = list.indexOf(marked());
  const moves = { ArrowDown: at + 1, ArrowUp: at - 1 };
  if (event.key in moves) {
    event.preventDefault();
    mark(list[(moves[event.key] + list.length) % list.length]);
  } else if (event.key === "Enter" && !event.isComposing) {
    event.preventDefault();
    if (event.ctrlKey || event.metaKey) ask();
    // What was found for earlier letters is not what is meant now.
    else if (waiting && !list[at]?.closest("[data-palette-commands]")) wanted = true;
    else list[at]?.click();
  }
});
dialog?.addEventListener("htmx:afterSwap", (event) => {
  const isAnswer = event.detail.target === found;
  if (isAnswer) waiting = false;
  if (!marked()) mark(visible()[0]);
  if (isAnswer && wanted) marked()?.click();
});
for (const name of ["htmx:responseError", "htmx:sendError", "htmx:timeout"]) {
  dialog?.addEventListener(name, () => {
    waiting = wanted = false;
    found.querySelector("[data-pending]")?.remove();
    failure = "The search failed. Type on to try again.";
    tell();
  });
}
// After the swap, also one that only takes the mark of the pending request away.
dialog?.addEventListener("htmx:afterRequest", tell);
dialog?.addEventListener("close", () => {
  htmx.trigger(input, "htmx:abort");
  found.replaceChildren();
});
dialog?.addEventListener("click", (event) => {
  if (event.target.closest("[data-palette-ask]")) ask();
  if (event.target.closest("[role=option]")) dialog.close();
});
