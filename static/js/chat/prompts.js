// Prompts: saved texts, which `/` at the start of the message, or the button below it, inserts.
import { completion, insert } from "./complete.js";

const message = document.getElementById("message");
const list = document.getElementById("prompt-options");
const button = document.querySelector("[data-prompts]");
const slot = document.getElementById("dialog-slot");
const SLASH = /^\/([^\n]{0,60})$/; // a name has no more (presets.MAX_NAME); a longer line is the message itself
let pressed = null; // the place of the caret when the button was pressed, until something is typed

function typed() {
  if (pressed) return pressed;
  const { selectionStart: start, selectionEnd: end } = message;
  const found = start === end && SLASH.exec(message.value.slice(0, end));
  return found ? { start: 0, end, text: found[1] } : null;
}

function choose(item, { start, end }) {
  pressed = null;
  insert(item.dataset.text ?? "", start, end);
  if ("editPrompts" in item.dataset) htmx.ajax("GET", "/ui/chat/presets/edit", { source: slot, target: slot, swap: "innerHTML" });
}

if (button) {
  message.addEventListener("input", () => (pressed = null));
  message.addEventListener("blur", () => (pressed = null));
  const address = (text) => `/ui/chat/presets?${new URLSearchParams({ q: text })}`;
  const complete = completion({ list, find: typed, address, choose, verb: "inserts" });
  button.addEventListener("click", () => {
    message.focus();
    pressed = { start: message.selectionStart, end: message.selectionEnd, text: "" };
    complete();
  });
  // What is written already may be what is to be saved.
  slot.addEventListener("htmx:afterSwap", (event) => {
    const field = event.target === slot && slot.querySelector("[data-new-prompt]");
    if (field && !field.value) field.value = message.value.trim();
  });
}
