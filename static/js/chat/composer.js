// The composer: Enter sends, the draft survives, a stopped question comes back to be changed.
import { onKey } from "../keys.js";
import { limits, limitTo } from "./scope.js";
import { running, toEnd, turns } from "./stream.js";

const form = document.getElementById("composer");
const message = document.getElementById("message");
const id = form.elements.c.value;
const DRAFT = `draft:${id}`;
const note = document.getElementById("editing");
let sent = ""; // the message of the last request
let left = ""; // what of it was in the box: nothing of a question that is asked again
let edits = false; // whether that was of an edited question
let stopped = false; // whether its answer was stopped
let before = null; // the draft and its scope, while a question is edited
let waits = false; // to be sent until the models of its provider are here

function draft(text) {
  if (before) return;
  if (text) sessionStorage.setItem(DRAFT, text);
  else sessionStorage.removeItem(DRAFT);
}

function fill(text) {
  message.value = text;
  draft(text);
  message.focus();
  message.setSelectionRange(text.length, text.length);
}

// Where the next question goes: after the turn `parent`, or in the place of an answer to `again`.
function place(name = "", turn = "") {
  for (const field of ["parent", "again"]) {
    form.elements[field].disabled = field !== name;
    form.elements[field].value = turn;
  }
}

const picking = () => document.querySelector("#picker[aria-busy], #picker .htmx-request");
const canSend = () => !running() && !form.matches("[data-archived]") && document.getElementById("send");

function send(text) {
  if (!canSend()) return;
  message.value = text;
  form.requestSubmit();
}

function again(question) {
  // While a request is under way, htmx would wait, and then send the draft.
  if (!canSend() || form.matches(".htmx-request") || picking()) return;
  if (before) endEdit(before.scope);
  const kept = message.value;
  place("again", question.dataset.question);
  send(question.textContent);
  message.value = kept;
}

function edit(button) {
  before ??= { text: message.value, scope: limits() };
  note.hidden = false;
  place("parent", button.dataset.edit);
  limitTo(JSON.parse(button.dataset.scope));
  fill(button.closest(".turn").querySelector("[data-question]").textContent);
}

function endEdit(scope) {
  const { text } = before;
  before = null;
  note.hidden = true;
  place();
  limitTo(scope);
  fill(text);
}

// An example question is about one repository, which may have been ingested since the page loaded.
function ask({ example, repository }) {
  if (repository) limitTo([[repository, repository]]);
  send(example);
}

if (!message.value) message.value = sessionStorage.getItem(DRAFT) ?? "";
message.addEventListener("input", () => draft(message.value));
message.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && before) {
    event.preventDefault();
    event.stopPropagation();
    return endEdit(before.scope);
  }
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  send(message.value);
});
form.addEventListener("htmx:afterRequest", (event) => event.detail.elt === form && !before && place());
form.addEventListener("htmx:configRequest", (event) => {
  if (event.detail.elt !== form) return;
  waits = Boolean(picking());
  if (waits || !message.value.trim() || running()) return event.preventDefault();
  sent = message.value;
  left = form.elements.again.disabled ? sent : "";
  edits = !form.elements.parent.disabled;
  stopped = false;
});

document.addEventListener("htmx:afterRequest", () => waits && !picking() && form.requestSubmit());

// What was typed, and an edit that was begun, since the request stay.
function clear() {
  if (before && edits) return endEdit(limits());
  const rest = (text) => (text.startsWith(left) ? text.slice(left.length) : text);
  if (before) before.text = rest(before.text);
  else if (message.value.startsWith(left)) message.setRangeText("", 0, left.length, "preserve");
  const draft = rest(sessionStorage.getItem(DRAFT) ?? "");
  if (draft) sessionStorage.setItem(DRAFT, draft);
  else sessionStorage.removeItem(DRAFT);
}

document.addEventListener("chat:sent", (event) => {
  // A command leaves alone what is there, and a stop may be answered before what it stops.
  if (!event.detail.keepsDraft && !stopped) clear();
  document.getElementById("more-actions").hidden = false;
  toEnd();
  // Without its socket the page cannot follow the answer: a reload shows it so far. One that is
  // still to be opened brings the page up to date.
  if (document.documentElement.dataset.live === "closed") location.assign(`${form.dataset.page ?? "/chat?"}c=${encodeURIComponent(id)}`);
});
document.addEventListener("htmx:wsAfterMessage", () => {
  if (turns().length) message.placeholder = running() ? "Write the next question; it is kept as a draft" : "Ask a follow-up";
});
document.addEventListener("chat:stopped", () => {
  stopped = true;
  // A step of a command is nobody's draft.
  if (turns().at(-1)?.dataset.step) return message.focus();
  const question = sent || (turns().at(-1)?.querySelector("[data-question]")?.textContent ?? "");
  if (message.value) message.focus();
  else fill(question);
});

// A new conversation begins with the provider and the model that are chosen here.
const begin = document.querySelector("[data-new]");

function keepChoice() {
  const address = new URL(begin.href);
  const chosen = new FormData(form);
  if (address.pathname !== "/chat" || !chosen.get("model")) return;
  for (const name of ["provider", "model"]) address.searchParams.set(name, chosen.get(name));
  begin.href = address;
}

for (const change of ["change", "htmx:afterSettle"]) document.addEventListener(change, keepChoice);
keepChoice();

// A refusal says why above the composer; it is no failure of the page.
document.addEventListener("htmx:beforeSwap", (event) => {
  if (!event.detail.xhr.getResponseHeader("X-Problem")) return;
  event.detail.shouldSwap = true;
  event.detail.isError = false;
});

document.addEventListener("click", (event) => {
  const at = (selector) => event.target.closest(selector);
  if (at("[data-edit]")) edit(at("[data-edit]"));
  if (at("[data-edit-cancel]")) endEdit(before.scope);
  if (at("[data-resend]")) again(at(".turn").querySelector("[data-question]"));
  if (at("[data-example]")) ask(at("[data-example]").dataset);
});

// The palette's question is asked at once. An address alone asks nothing: it may come from anywhere.
const asked = sessionStorage.getItem("ask");
sessionStorage.removeItem("ask");
if (asked && asked === message.value) addEventListener("load", () => send(asked));

onKey("r", () => {
  const last = turns().at(-1)?.querySelector("[data-resend]");
  last?.click();
  return Boolean(last);
});

export function stop() {
  const button = document.querySelector("[data-stop]");
  button?.click();
  return Boolean(button);
}
