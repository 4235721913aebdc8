// Choosing several conversations of the list, and what is done with all of them at once. The boxes
// and the count are rows.js's.
import { openDialog } from "../layers.js";

const sidebar = document.getElementById("sidebar");
const filter = document.getElementById("convo-filter");
const bar = document.getElementById("convo-bulk");
const mode = document.querySelector("[data-select-mode]");
const dialog = document.getElementById("bulk-delete-dialog");
const clear = () => document.dispatchEvent(new Event("clearselection"));

function select(on) {
  sidebar.classList.toggle("is-selecting", on);
  mode.setAttribute("aria-pressed", on);
  if (!on) clear();
}

// Only what is archived can be deleted, so the button is there where only such are listed.
function offerDelete() {
  bar.querySelector("[data-bulk-delete]").hidden = filter.elements.state.value !== "archived";
}

mode.addEventListener("click", () => select(mode.getAttribute("aria-pressed") !== "true"));
bar.querySelector("[data-select-done]").addEventListener("click", () => {
  select(false);
  mode.focus();
});
bar.querySelector("[data-bulk-delete]").addEventListener("click", () => {
  const count = bar.querySelectorAll("[data-ids] input").length;
  const what = count === 1 ? "1 conversation" : `${count} conversations`;
  dialog.querySelector("[data-bulk-delete-text]").textContent = `This will permanently delete ${what}. This action cannot be undone.`;
  openDialog(dialog);
});
filter.elements.state.addEventListener("change", () => {
  clear();
  offerDelete();
});
// While the database is away nothing can be archived, restored or deleted. The page is told by its
// socket, the list and the composer.
function offerVerbs() {
  const notice = document.getElementById("history-away");
  const away = document.getElementById("convos").matches("[data-away]") || (notice && !notice.hidden);
  mode.disabled = away;
  mode.title = away ? "Bulk actions disabled (database disconnected)" : "Select";
  for (const each of document.querySelectorAll("[data-needs-database], [data-convo-menu]")) each.disabled = away;
}

for (const change of ["htmx:wsAfterMessage", "htmx:afterSettle"]) document.addEventListener(change, offerVerbs);
offerVerbs();
document.addEventListener("chat:bulk", clear);
offerDelete();
