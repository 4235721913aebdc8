// Keyboard shortcuts. Single keys work only while no field has focus, and can be switched off.
// Pages add their own: `import { onKey } from "./keys.js"; onKey("n", () => …)`.
import { openDialog } from "./layers.js";
import { openPalette } from "./palette.js";
import { step } from "./rows.js";

const SEQUENCE_TIME = 1500;
const handlers = new Map();
let pending = null; // the "g" of "g h", and when it was pressed

// A handler that returns false leaves the key to the browser.
export function onKey(key, handler) {
  handlers.set(key, handler);
}

const enabled = () => localStorage.getItem("single-keys") !== "off";
const writing = (target) => target.closest("input, textarea, select, [contenteditable]") && !target.matches("[type=checkbox], [type=radio]");

function goTo(letter) {
  const link = document.querySelector(`.nav [data-key="${CSS.escape(letter)}"]`);
  link?.click();
  return Boolean(link);
}

function single(key) {
  if (pending && Date.now() - pending < SEQUENCE_TIME) {
    pending = null;
    return goTo(key);
  }
  pending = null;
  if (key === "g") {
    pending = Date.now();
    return true;
  }
  const handler = handlers.get(key);
  return handler ? handler() !== false : false;
}

document.addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
    event.preventDefault();
    openPalette();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (!enabled() || writing(event.target) || document.querySelector("dialog[open]")) return;
  if (single(event.key)) event.preventDefault();
});

onKey("?", () => openDialog(document.getElementById("keys")));
onKey("j", () => step(1));
onKey("k", () => step(-1));
onKey("n", () => location.assign(document.querySelector("[data-new]")?.href ?? "/chat"));
onKey("/", () => {
  const field = document.querySelector("[data-page-search]");
  field?.focus();
  return Boolean(field);
});

const control = document.querySelector("[data-keys-switch]");
if (control) {
  control.checked = enabled();
  control.addEventListener("change", () => localStorage.setItem("single-keys", control.checked ? "on" : "off"));
}
