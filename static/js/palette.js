// Command palette (Ctrl K): type to narrow, arrows to choose, Enter to go.
import { openDialog } from "./layers.js";

const dialog = document.getElementById("palette");
const input = dialog?.querySelector("[data-palette-input]");
const options = () => [...dialog.querySelectorAll("[role=option]")];
const visible = () => options().filter((option) => !option.hidden);

function mark(option) {
  for (const each of options()) {
    each.classList.toggle("is-current", each === option);
    each.setAttribute("aria-selected", each === option);
  }
  if (option) input.setAttribute("aria-activedescendant", option.id);
  else input.removeAttribute("aria-activedescendant");
  option?.scrollIntoView({ block: "nearest" });
}

function narrow() {
  const words = input.value.trim().toLowerCase();
  for (const option of options()) option.hidden = !option.textContent.toLowerCase().includes(words);
  mark(visible()[0]);
}

export function openPalette() {
  if (!dialog || dialog.open) return;
  input.value = "";
  narrow();
  openDialog(dialog);
}

input?.addEventListener("input", narrow);
input?.addEventListener("keydown", (event) => {
  const list = visible();
  const at = list.findIndex((option) => option.classList.contains("is-current"));
  const moves = { ArrowDown: at + 1, ArrowUp: at - 1 };
  if (event.key in moves) {
    event.preventDefault();
    mark(list[(moves[event.key] + list.length) % list.length]);
  } else if (event.key === "Enter") {
    event.preventDefault();
    list[at]?.click();
  }
});
dialog?.addEventListener("click", (event) => {
  if (event.target.closest("[role=option]")) dialog.close();
});
