// The ingest page: required fields, the folder picker, spoken progress.
import { closeLayer } from "./layers.js";

function setError(field, text) {
  const error = document.getElementById(`${field.id}-error`);
  error.hidden = !text;
  error.querySelector("[data-error-text]").textContent = text;
  if (text) field.setAttribute("aria-invalid", "true");
  else field.removeAttribute("aria-invalid");
}

document.addEventListener("focusout", (event) => {
  const field = event.target;
  // Leaving for the picker is on the way to filling the field.
  if (!field.dataset?.required || event.relatedTarget?.id === "choose-folder") return;
  if (!field.value.trim()) setError(field, field.dataset.required);
});
document.addEventListener("input", (event) => {
  if (event.target.dataset.required && event.target.value.trim()) setError(event.target, "");
});

// The name is that of the folder until somebody writes another one. The server names a repository
// that it fetches by its URL, or as PATH@REF.
const isFetched = (path) => /^[a-z][a-z0-9+.-]*:|@/i.test(path);
const folderName = (path) => (isFetched(path) ? "" : path.split("/").filter((part) => part && part !== "~").at(-1) ?? "");
let prefilled = "";
function fillName() {
  const name = document.getElementById("name");
  if (name.value.trim() && name.value !== prefilled) return;
  prefilled = folderName(document.getElementById("path").value.trim());
  name.value = prefilled;
}
document.addEventListener("input", (event) => event.target.id === "path" && fillName());

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-use-folder]");
  if (!button) return;
  const path = document.getElementById("path");
  const name = document.getElementById("name");
  path.value = button.dataset.useFolder;
  setError(path, "");
  fillName();
  button.closest("dialog").close();
  name.focus();
});

// The folder picker is swapped at each step. The focus goes to the folder that one comes from on the
// way up, to the first folder on the way down.
let left = "";
document.addEventListener("htmx:beforeSwap", ({ detail }) => {
  if (detail.target.id === "picker") left = detail.target.querySelector("[data-picked-path]")?.textContent ?? "";
});
document.addEventListener("htmx:afterSettle", ({ target }) => {
  if (target.id !== "picker") return;
  const folders = [...target.querySelectorAll(".picker__dir")];
  const from = folders.find((folder) => folder.dataset.path === left);
  (from ?? folders[0] ?? target.querySelector("[data-use-folder]")).focus();
});

// A button of the form #actions says what it does until it is swapped for its next self.
document.addEventListener("submit", ({ submitter }) => {
  if (submitter?.getAttribute("form") !== "actions") return;
  submitter.classList.add("htmx-request");
  if (submitter.closest("[data-layer]")) closeLayer();
});

document.addEventListener("htmx:afterRequest", ({ target, detail: { successful } }) => {
  if (successful && target.closest("[data-close-when-sent]")) document.dispatchEvent(new Event("clearselection"));
});

// The answer to an action may arrive after what the socket said later: a run over nothing new is over
// before. So the socket is asked for everything once such an answer has been shown.
let socket = null;
document.addEventListener("htmx:wsOpen", (event) => {
  socket = event.detail.socketWrapper;
});
document.addEventListener("htmx:wsClose", () => {
  socket = null;
});
document.addEventListener("htmx:afterOnLoad", ({ detail: { requestConfig: asked } }) => {
  const told = asked.verb === "post" || asked.path === "/ui/ingest/parts";
  if (told && asked.path.startsWith("/ui/ingest/")) socket?.send("all", document.body);
});

// The run card is swapped whole; a live region must stay, so its text is set from the card.
function speak() {
  const text = document.querySelector("[data-speak]")?.dataset.speak ?? "";
  const speaker = document.querySelector("[data-speaker]");
  if (speaker.textContent !== text) speaker.textContent = text;
}

// The list of models follows the lock: it is asked for again when that changes.
let lock = document.getElementById("model-lock").dataset.lock;
function followLock() {
  const now = document.getElementById("model-lock").dataset.lock;
  if (now !== lock) document.dispatchEvent(new Event("lockchange"));
  lock = now;
}

for (const name of ["htmx:wsAfterMessage", "htmx:afterSettle"]) {
  document.addEventListener(name, () => {
    speak();
    followLock();
  });
}
