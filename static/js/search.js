// The search page: a name is looked up as it is typed; the arrow keys go from the field to the rows;
// filters that are typed move to their fields; a wide window shows the lines of a result beside it.
import { step } from "./rows.js";

const PAUSE = 200; // after the last letter
const WIDE = matchMedia("(min-width: 1500px)");
const form = document.getElementById("search-form");
const field = form.elements.q;
const symbols = () => form.elements.mode.value === "symbols";
let timer = 0;
let live = false;
let sent = field.value;

field.addEventListener("input", () => {
  clearTimeout(timer);
  if (!symbols()) return;
  timer = setTimeout(() => {
    live = true;
    form.requestSubmit();
  }, PAUSE);
});
// What is looked up while typing replaces the address; each letter is not a page to go back to.
form.addEventListener("htmx:configRequest", (event) => {
  clearTimeout(timer);
  sent = field.value;
  if (live) event.detail.headers["X-Live"] = "1";
  live = false;
});
field.addEventListener("keydown", (event) => {
  if (event.key === "ArrowDown" && step(1)) event.preventDefault();
});
document.addEventListener("change", (event) => {
  if (event.target.name === "mode") field.placeholder = event.target.dataset.placeholder;
});

// A filter that was typed is in its field now. What is typed since stays.
function shorten() {
  const { box } = document.getElementById("results").dataset;
  if (box !== undefined && field.value === sent) field.value = sent = box;
}

const pane = () => document.querySelector("[data-preview-pane]");
let shown = "";

function preview(row) {
  if (!WIDE.matches || !row || !pane() || row.dataset.preview === shown) return;
  shown = row.dataset.preview;
  for (const each of document.querySelectorAll(".hit.is-current")) each.classList.remove("is-current");
  row.classList.add("is-current");
  // The pane drops an older request for a newer one. htmx reports a request that fails.
  htmx.ajax("GET", shown, { source: pane(), target: "#source-body", swap: "outerHTML" }).catch(() => {});
}

// Only in the pane: `scrollIntoView` would move the page too.
function center() {
  const line = pane()?.querySelector(".is-cited, .is-near");
  const box = line?.closest(".viewer__code, .viewer__was");
  if (box) box.scrollTop += line.getBoundingClientRect().top - box.getBoundingClientRect().top - box.clientHeight / 3;
}

function previewFirst() {
  shown = "";
  preview(document.querySelector("[data-preview]"));
}

document.addEventListener("focusin", (event) => preview(event.target.closest("[data-preview]")));
document.addEventListener("htmx:afterSwap", (event) => {
  if (event.detail.target.id === "results") {
    shorten();
    previewFirst();
  }
  if (event.detail.target.id === "source-body") center();
});
// Another ingest of a repository that was searched was published since.
document.addEventListener("htmx:wsAfterMessage", () => {
  const results = document.getElementById("results");
  const now = JSON.parse(document.getElementById("generations")?.dataset.generations ?? "{}");
  const then = JSON.parse(results.dataset.generations);
  const changed = Object.keys(then).some((root) => now[root] !== undefined && now[root] !== then[root]);
  if (field.value) document.getElementById("search-again").hidden = !changed;
});
WIDE.addEventListener("change", previewFirst);
previewFirst();
