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
// A swapped element takes the focus with it; its next self, under the same id, gets it back.
let focused = null;
document.addEventListener("htmx:wsBeforeMessage", () => (focused = document.activeElement?.id));
document.addEventListener("htmx:wsAfterMessage", () => {
  if (focused && document.activeElement === document.body) document.getElementById(focused)?.focus({ preventScroll: true });
});

// A control that is swapped between press and release gets no click from the browser: its next self
// gets it, if it is under the pointer.
const CONTROLS = "a, button, input, summary";
const named = (control) => control.id || control.dataset.source || `${control.closest("[id]")?.id}: ${control.textContent}`;
let pressed = null;
let name = "";
document.addEventListener("pointerdown", ({ target }) => {
  pressed = target.closest(CONTROLS);
  name = pressed && named(pressed);
});
document.addEventListener("pointerup", ({ target }) => {
  if (!pressed || pressed.isConnected) return;
  const next = target.closest(CONTROLS);
  if (next && named(next) === name) next.click();
});

document.addEventListener("htmx:wsClose", (event) => {
  if (!event.target.matches("[data-live]") || leaving) return;
  set("closed");
  // htmx retries after an abnormal end only; a server that stops says goodbye properly.
  const retried = [1006, 1011, 1012, 1013].includes(event.detail.event.code);
  if (!retried) setTimeout(() => event.detail.socketWrapper.reconnect(), 1000);
});
