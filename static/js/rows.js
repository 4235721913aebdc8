// Tables and lists: j and k walk the rows, a filter hides those that do not match, checkboxes feed a
// bulk bar. The bar's [data-ids] holds the chosen values under the name it says; its buttons with
// [data-needs] want every chosen row to have that [data-state]; if it is empty, one row.
const rowsOf = (table) => [...(table?.querySelectorAll("[data-row]") ?? [])];
const boxesOf = (table) => rowsOf(table).filter((row) => !row.hidden).map((row) => row.querySelector("[data-select]"));

export function step(by) {
  const rows = [...document.querySelectorAll("[data-rows] [data-row]")].filter((row) => !row.hidden);
  if (!rows.length) return false;
  const at = rows.findIndex((row) => row.contains(document.activeElement));
  const next = rows[Math.min(rows.length - 1, Math.max(0, at + by))];
  next.querySelector("[data-row-focus]")?.focus();
  return true;
}

function filter(input) {
  const words = input.value.trim().toLowerCase();
  const table = document.querySelector(input.dataset.filter);
  for (const row of rowsOf(table)) row.hidden = !row.dataset.row.toLowerCase().includes(words);
  const none = document.querySelector(`${input.dataset.filter}-none`);
  if (none) none.hidden = !words || rowsOf(table).some((row) => !row.hidden);
}

const selectable = () => document.querySelector("[data-rows][data-selectable]");

// The chosen rows are kept by value here, since the table is swapped while a run goes on.
const chosen = new Set();

function refreshSelection() {
  const bar = document.querySelector("[data-bulkbar]");
  if (!bar) return;
  // The table is not there while it has no rows.
  const table = selectable();
  const rows = rowsOf(table);
  const values = new Set(rows.map((row) => row.querySelector("[data-select]").value));
  for (const value of chosen) if (!values.has(value)) chosen.delete(value);
  for (const row of rows) {
    const box = row.querySelector("[data-select]");
    box.checked = chosen.has(box.value);
    row.classList.toggle("is-chosen", box.checked); // the box says it to those who cannot see
  }
  const all = document.querySelector("[data-select-all]");
  if (all) {
    all.checked = values.size > 0 && chosen.size === values.size;
    all.indeterminate = chosen.size > 0 && !all.checked;
  }
  bar.hidden = chosen.size === 0 && !("lasting" in bar.dataset);
  bar.querySelector("[data-count]").textContent = `${chosen.size} selected`;
  const ids = bar.querySelector("[data-ids]");
  ids.replaceChildren(...[...chosen].map((value) => hidden(ids.dataset.ids, value)));
  const states = new Set(rows.filter((row) => row.querySelector("[data-select]").checked).map((row) => row.dataset.state));
  for (const button of bar.querySelectorAll("[data-needs]")) {
    const { needs } = button.dataset;
    button.disabled = needs ? states.size !== 1 || !states.has(needs) : !states.size;
  }
}

function hidden(name, value) {
  const input = document.createElement("input");
  Object.assign(input, { type: "hidden", name, value });
  return input;
}

document.addEventListener("change", (event) => {
  const box = event.target;
  if (box.matches("[data-select]")) box.checked ? chosen.add(box.value) : chosen.delete(box.value);
  else if (box.matches("[data-select-all]")) {
    for (const each of boxesOf(selectable())) box.checked ? chosen.add(each.value) : chosen.delete(each.value);
  } else return;
  refreshSelection();
});
document.addEventListener("click", (event) => {
  if (!event.target.closest("[data-clear-selection]")) return;
  chosen.clear();
  refreshSelection();
});
document.addEventListener("clearselection", () => {
  chosen.clear();
  refreshSelection();
});
document.addEventListener("input", (event) => event.target.matches("[data-filter]") && filter(event.target));

function afterSwap() {
  document.querySelectorAll("[data-filter]").forEach(filter);
  refreshSelection();
}
document.addEventListener("htmx:wsAfterMessage", afterSwap);
document.addEventListener("htmx:afterSettle", afterSwap);
