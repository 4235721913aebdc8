// The state of the page's websocket, in words: the sidebar's foot, and banners that ask for it.
// On reconnect the server renders everything anew, so nothing is remembered here.
import { released } from "./press.js";

const WORDS = { connecting: "Connecting…", open: "Connected", closed: "Server unreachable" };
const DOTS = { connecting: "", open: "dot--ok", closed: "dot--danger" };
const BANNER_DELAY = 1000; // a quick connect shows nothing
let state = "";
let leaving = false;

function set(next) {
  if (state === next || leaving) return;
  // While it retries, "unreachable" stays until it is reached.
  if (state === "closed" && next === "connecting") return;
  state = next;
  document.documentElement.dataset.live = next;
  for (const dot of document.querySelectorAll("[data-live-dot]")) dot.className = `dot ${DOTS[next]}`;
  for (const text of document.querySelectorAll("[data-live-text]")) text.textContent = WORDS[next];
  setTimeout(banners, next === "connecting" ? BANNER_DELAY : 0);
}

// A banner moves what is below it.
async function banners() {
  await released();
  for (const banner of document.querySelectorAll("[data-live-banner]")) banner.hidden = banner.dataset.liveBanner !== state;
}

addEventListener("pagehide", () => (leaving = true));
addEventListener("pageshow", () => (leaving = false));
for (const [name, next] of Object.entries({ "htmx:wsConnecting": "connecting", "htmx:wsOpen": "open", "htmx:wsError": "closed" })) {
  document.addEventListener(name, (event) => event.target.matches("[data-live]") && set(next));
}
// A press is a click if the control is under the pointer when that is released. To a person it is one
// if the pointer has not moved, whatever the page has done meanwhile: swapped the control, or moved it.
const CONTROLS = "a, button, input, summary";
const NEAR = 4; // px
const named = (control) => control.id || control.dataset.source || `${control.closest("[id]")?.id}: ${control.ariaLabel ?? control.textContent}`;
const namesakes = (name) => [...document.querySelectorAll(CONTROLS)].filter((control) => named(control) === name);
let press = null;
document.addEventListener("pointerdown", ({ target, button, clientX, clientY }) => {
  const control = button ? null : target.closest(CONTROLS);
  press = control && { control, name: named(control), clientX, clientY };
});
document.addEventListener("pointerup", ({ target, clientX, clientY }) => {
  if (!press || press.control.contains(target)) return; // the browser makes a click of it
  const { control, name } = press;
  const stayed = Math.hypot(clientX - press.clientX, clientY - press.clientY) < NEAR;
  if (control.isConnected) return stayed && control.click();
  const next = namesakes(name);
  const under = next.find((other) => other.contains(target));
  if (under) under.click();
  else if (stayed && next.length === 1) next[0].click(); // of two, nobody can say which was pressed
});

// A control that is swapped, or disabled while its request is under way, loses the focus: it or its next
// self gets it back.
function focus() {
  const element = document.activeElement;
  return { element, name: element?.matches(CONTROLS) ? named(element) : element?.id };
}

function giveBack({ element, name }) {
  if (!name || document.activeElement !== document.body) return;
  const next = namesakes(name);
  const now = element.isConnected ? element : document.getElementById(name) ?? (next.length === 1 ? next[0] : null);
  now?.focus({ preventScroll: true });
}

let before = null;
for (const name of ["htmx:beforeSwap", "htmx:wsBeforeMessage"]) document.addEventListener(name, () => (before = focus()));
for (const name of ["htmx:afterSwap", "htmx:wsAfterMessage"]) document.addEventListener(name, () => before?.element?.isConnected === false && giveBack(before));
const disabled = new WeakMap(); // request → the focus that it has taken
document.addEventListener("htmx:beforeRequest", ({ detail: { xhr } }) => {
  const now = focus();
  queueMicrotask(() => now.element?.disabled && disabled.set(xhr, now));
});
document.addEventListener("htmx:afterRequest", ({ detail: { xhr } }) => disabled.has(xhr) && giveBack(disabled.get(xhr)));

// htmx tells an answer's events to the control that has asked. If that was swapped meanwhile, nobody
// would hear them. If what the answer replaces was swapped too, it has no place, and nor have its other parts.
document.addEventListener("htmx:beforeRequest", ({ detail: { xhr, elt, target } }) => {
  elt.addEventListener("htmx:beforeOnLoad", (event) => elt.isConnected || target.isConnected || event.preventDefault(), { once: true });
  xhr.addEventListener("readystatechange", () => {
    const events = xhr.readyState === XMLHttpRequest.DONE && !elt.isConnected && xhr.getResponseHeader("HX-Trigger");
    if (!events) return;
    const details = events.startsWith("{") ? JSON.parse(events) : { [events]: {} };
    for (const [name, detail] of Object.entries(details)) htmx.trigger(document.body, name, detail);
  });
});

// What is asked for again and again replaces nothing until it has changed: its text may be selected.
let last = ""; // answer
document.addEventListener("htmx:beforeSwap", ({ detail }) => {
  const { target, serverResponse } = detail;
  if (target.matches("[data-polled]") && serverResponse === last) detail.shouldSwap = false;
  last = serverResponse;
});

document.addEventListener("htmx:wsClose", (event) => {
  if (!event.target.matches("[data-live]") || leaving) return;
  set("closed");
  // htmx retries after an abnormal end only; a server that stops says goodbye properly.
  const retried = [1006, 1011, 1012, 1013].includes(event.detail.event.code);
  if (!retried) setTimeout(() => event.detail.socketWrapper.reconnect(), 1000);
});
