// Layers: dialogs (the browser traps focus), drawers and the phone's sidebar (we do). The front one
// closes with Esc or a click on the scrim, and focus goes back to what opened it.
const FOCUSABLE = "a[href], button:not([disabled]), input:not([disabled]), select:not([disabled]), textarea:not([disabled]), [tabindex='0']";
const opened = []; // [{ layer, opener }], front last

// What a layer shows comes from the server: what was asked for last, and nothing that was asked for before
// another layer opened or closed.
const FILLED = "[data-layer], [data-dialog-slot]";
let coming = null; // request

function drop() {
  coming?.abort();
  coming = null;
}

document.addEventListener("htmx:confirm", ({ detail: { target } }) => target.matches(FILLED) && drop());
document.addEventListener("htmx:beforeRequest", ({ detail: { target, xhr } }) => {
  if (target.matches(FILLED)) coming = xhr;
});

export function openDialog(dialog, opener = document.activeElement) {
  if (dialog.open) return;
  drop();
  dialog.showModal();
  // The browser gives the focus back, but not to an opener that was swapped meanwhile.
  dialog.addEventListener("close", () => opener?.isConnected || document.getElementById(opener?.id)?.focus(), { once: true });
  dialog.querySelector("[autofocus], [data-palette-input]")?.focus();
}

export function openLayer(layer, opener = document.activeElement) {
  if (opened.some((entry) => entry.layer === layer)) return;
  drop();
  layer.classList.add("is-open");
  opened.push({ layer, opener });
  (layer.querySelector("[data-autofocus]") ?? layer.querySelector(FOCUSABLE))?.focus();
}

export function closeLayer() {
  const entry = opened.pop();
  if (!entry) return false;
  drop();
  entry.layer.classList.remove("is-open");
  if (entry.layer.matches("[data-discard]")) entry.layer.replaceChildren();
  // The opener may have been swapped for its newer self: the id leads there.
  const opener = entry.opener?.isConnected ? entry.opener : document.getElementById(entry.opener?.id);
  opener?.focus();
  return true;
}

export function closeAnyLayer(layer) {
  if (opened.at(-1)?.layer === layer) closeLayer();
}

const above = () => document.querySelector("dialog[open], :popover-open");

function trap(event) {
  const front = opened.at(-1)?.layer;
  if (!front || above()) return;
  const stops = [...front.querySelectorAll(FOCUSABLE)].filter((item) => item.offsetParent !== null);
  if (!stops.length) return;
  const first = stops[0];
  const last = stops.at(-1);
  const inside = front.contains(document.activeElement);
  if (event.shiftKey && (!inside || document.activeElement === first)) last.focus();
  else if (!event.shiftKey && (!inside || document.activeElement === last)) first.focus();
  else return;
  event.preventDefault();
}

document.addEventListener("click", (event) => {
  const at = (selector) => event.target.closest(selector);
  const opener = at("[data-open-dialog]");
  if (opener) {
    opener.closest("dialog")?.close();
    openDialog(document.getElementById(opener.dataset.openDialog));
  }
  if (at("[data-close-dialog]")) at("dialog").close();
  else if (event.target instanceof HTMLDialogElement) event.target.close(); // its backdrop
  if (at("[data-open-sidebar]")) {
    event.preventDefault();
    openLayer(document.getElementById("sidebar"), at("[data-open-sidebar]"));
  }
  if (at("[data-close-layer]")) {
    event.preventDefault();
    closeLayer();
  }
});

document.addEventListener("keydown", (event) => {
  if (event.key === "Tab") trap(event);
  // The Esc of a dialog or popover is the browser's.
  if (event.key === "Escape" && !above() && closeLayer()) event.preventDefault();
});

// A dialog closes when what it has sent is done, unless it was closed before: it may be open again, for
// something else.
const late = new WeakSet(); // requests
document.addEventListener("htmx:beforeRequest", ({ detail: { elt, xhr } }) => {
  elt.closest("dialog")?.addEventListener("close", () => late.add(xhr), { once: true });
});
document.addEventListener("htmx:afterRequest", ({ target, detail: { successful, xhr } }) => {
  const form = late.has(xhr) ? null : target.closest("[data-close-when-sent]");
  if (form && (successful || form.dataset.closeWhenSent === "always")) form.closest("dialog").close();
});

// Layers whose content comes from the server open when it arrives.
document.addEventListener("htmx:afterSwap", (event) => {
  const { target, requestConfig } = event.detail;
  if (!target) return; // an event stream's: no layer comes so
  if (target.matches(FILLED)) coming = null;
  if (target.matches("[data-layer]") && target.children.length) openLayer(target, requestConfig.elt);
  const dialog = target.matches("[data-dialog-slot]") && target.querySelector("dialog");
  if (dialog) openDialog(dialog);
});
