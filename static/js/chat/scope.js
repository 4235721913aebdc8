// What the question is limited to: chips above the textarea, and `@` in it, which completes.
import { completion, insert } from "./complete.js";

const box = document.getElementById("scope");
const message = document.getElementById("message");
const say = document.getElementById("completion-say");
const AT = /(?:^|\s)@(\S{0,400})$/; // no more is looked up (scope.MAX_TYPED); the name of a ref has another `@`

const values = () => [...box.querySelectorAll("[name=scope]:not([disabled])")].map((input) => input.value).filter(Boolean);

function typed() {
  if (message.selectionStart !== message.selectionEnd) return null;
  const found = AT.exec(message.value.slice(0, message.selectionStart));
  return found && { start: message.selectionStart - found[1].length - 1, text: found[1] };
}

function append(value, label) {
  const chip = box.querySelector("template").content.firstElementChild.cloneNode(true);
  chip.querySelector("input").value = value;
  chip.querySelector("input").disabled = false;
  chip.querySelector("span").textContent = label;
  chip.querySelector("button").setAttribute("aria-label", `Remove ${label}`);
  box.querySelector(".scope-chips").append(chip);
}

// Limit the next question to areas, each a value and its label.
export function limitTo(areas) {
  box?.querySelector(".scope-chips").replaceChildren();
  if (box) for (const [value, label] of areas) append(value, label);
}

// What the next question is limited to, for `limitTo`.
export const limits = () => [...(box?.querySelectorAll(".scope-chips > li") ?? [])].map((chip) => [chip.querySelector("input").value, chip.textContent.trim()]);

function add(item, { start, text }) {
  const label = item.textContent.trim();
  if (!values().includes(item.dataset.area)) append(item.dataset.area, label);
  insert("", start, start + 1 + text.length);
  say.textContent = `Searches in ${label}`;
}

function address(text) {
  const query = new URLSearchParams({ at: text });
  for (const value of values()) query.append("scope", value);
  return `/ui/chat/scope?${query}`;
}

function remove(button) {
  const chip = button.closest("li");
  const next = chip.nextElementSibling ?? chip.previousElementSibling;
  say.textContent = `${chip.textContent.trim()} removed`;
  chip.remove();
  (next?.querySelector("button") ?? message).focus();
}

if (box) {
  const list = document.getElementById("scope-options");
  const complete = completion({ list, find: typed, address, choose: add, verb: "adds", none: "No repository or path matches" });
  message.addEventListener("keydown", (event) => {
    if (event.key !== "Backspace" || event.isComposing || message.value || !values().length) return;
    remove(box.querySelector(".scope-chips > :last-child button"));
    message.focus();
  });
  box.addEventListener("click", (event) => {
    const button = event.target.closest("[data-scope-remove]");
    if (button) remove(button);
    if (!event.target.closest("[data-scope-add]")) return;
    message.focus();
    if (!typed()) {
      const before = message.value.slice(0, message.selectionStart);
      message.setRangeText(/\S$/.test(before) ? " @" : "@", message.selectionStart, message.selectionEnd, "end");
    }
    complete();
  });
}
