// The source viewer: a citation opens its lines beside the answer (or over it, on a narrow window),
// focus goes to the code, and Esc brings it back to the chip.
import { closeLayer, openLayer } from "../layers.js";
import { onKey } from "../keys.js";
import { stop } from "./composer.js";

const split = document.getElementById("split");
const viewer = document.getElementById("source");
const tabs = document.querySelector("[data-viewer-tabs]");
const toggle = document.querySelector("[data-viewer-toggle]");
const narrow = matchMedia("(max-width: 1180px)");
let opener = null; // the chip that was followed
let opened = ""; // its address

const isOpen = () => !viewer.hidden;
const sources = (turn) => [...(turn?.querySelectorAll(".source-row") ?? [])];

function show() {
  const was = isOpen();
  viewer.hidden = false;
  toggle.setAttribute("aria-pressed", "true");
  if (narrow.matches) openLayer(viewer, opener ?? toggle);
  else if (!was) split.classList.remove("split--solo");
}

function hide() {
  if (!isOpen()) return false;
  if (viewer.classList.contains("is-open")) closeLayer();
  viewer.hidden = true;
  split.classList.add("split--solo");
  toggle.setAttribute("aria-pressed", "false");
  mark();
  (opener?.isConnected ? opener : toggle).focus();
  return true;
}

function mark() {
  for (const chip of document.querySelectorAll("#turns [data-source][aria-current]")) chip.removeAttribute("aria-current");
  if (!isOpen() || !opened) return;
  const turn = opener?.closest(".turn");
  for (const chip of turn?.querySelectorAll("[data-source]") ?? []) if (chip.dataset.source === opened) chip.setAttribute("aria-current", "true");
}

function drawTabs(turn) {
  const made = sources(turn).map((row) => {
    const tab = document.createElement("a");
    tab.href = row.href;
    tab.role = "tab";
    tab.dataset.tab = row.dataset.source;
    tab.setAttribute("aria-selected", row.dataset.source === opened);
    tab.setAttribute("aria-controls", "source-body");
    const name = row.querySelector(".path").lastChild.textContent;
    const line = row.querySelector(".nowrap").textContent.split("–")[0];
    tab.append(row.querySelector(".cite").cloneNode(true), `${name}:${line}`);
    return tab;
  });
  tabs.replaceChildren(...made);
  tabs.querySelector('[aria-selected="true"]')?.scrollIntoView({ inline: "nearest", block: "nearest" });
}

function scrollToLines() {
  const code = viewer.querySelector(".viewer__code");
  const first = code?.querySelector(".line.is-cited");
  if (first) {
    code.scrollTop = first.offsetTop - code.offsetTop - code.clientHeight / 3;
    const row = sources(opener?.closest(".turn")).find((one) => one.dataset.source === opened);
    const chip = row?.querySelector(".cite").cloneNode(true);
    if (chip) {
      chip.classList.add("line__cite");
      chip.setAttribute("aria-current", "true");
      first.prepend(chip);
    }
  }
  code?.focus({ preventScroll: true });
}

async function open(chip) {
  opener = chip;
  opened = chip.dataset.source;
  show();
  drawTabs(chip.closest(".turn"));
  mark();
  await htmx.ajax("GET", opened, { target: "#source-body", swap: "outerHTML" });
  scrollToLines();
}

// An unknown or vanished file comes with its own page part and a status: it is shown as well.
document.addEventListener("htmx:beforeSwap", (event) => {
  if (event.detail.target.id !== "source-body") return;
  event.detail.shouldSwap = true;
  event.detail.isError = false;
});

document.addEventListener("click", (event) => {
  if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  const chip = event.target.closest("[data-source]");
  const tab = event.target.closest("[data-tab]");
  if (chip || tab) event.preventDefault();
  if (chip) open(chip);
  if (tab) open(sources(opener.closest(".turn")).find((row) => row.dataset.source === tab.dataset.tab));
  if (event.target.closest("[data-viewer-close]")) hide();
  if (event.target.closest("[data-viewer-toggle]")) isOpen() ? hide() : show();
  const copy = event.target.closest("[data-copy-code]");
  if (copy) copyCode(copy);
});

function copyCode(button) {
  const lines = [...button.closest(".snippet").querySelectorAll(".line")].map((line) => {
    const clone = line.cloneNode(true);
    clone.querySelector(".ln")?.remove();
    return clone.textContent.replace(/\n$/, "");
  });
  const carrier = document.createElement("button");
  carrier.dataset.copy = lines.join("\n");
  carrier.hidden = true;
  button.after(carrier);
  carrier.click();
  carrier.remove();
}

// A chip and all that shows the same lines light up together.
for (const [name, on] of [["mouseover", true], ["mouseout", false]]) {
  document.addEventListener(name, (event) => {
    const chip = event.target.closest?.("#turns [data-source]");
    if (!chip) return;
    for (const other of chip.closest(".turn").querySelectorAll(".cite[data-source]")) {
      if (other.dataset.source === chip.dataset.source) other.classList.toggle("is-linked", on);
    }
    if (chip.dataset.source === opened) for (const line of viewer.querySelectorAll(".is-cited")) line.classList.toggle("is-linked", on);
  });
}

function step(by) {
  const turn = opener?.closest(".turn") ?? [...document.querySelectorAll("#turns > .turn")].findLast((one) => sources(one).length);
  const rows = sources(turn);
  if (!rows.length) return false;
  const at = rows.findIndex((row) => row.dataset.source === opened);
  open(rows[at < 0 ? 0 : (at + by + rows.length) % rows.length]);
  return true;
}

onKey("]", () => step(1));
onKey("[", () => step(-1));
onKey("\\", () => (isOpen() ? hide() : show()));

document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || document.querySelector("dialog[open], :popover-open")) return;
  if (viewer.contains(document.activeElement) && hide()) return;
  if (event.defaultPrevented) {
    // A layer has closed; where it was the viewer, its state follows.
    if (isOpen() && narrow.matches && !viewer.classList.contains("is-open")) hide();
    return;
  }
  if (!stop()) hide();
});
narrow.addEventListener("change", () => isOpen() && hide());
// The answer's final form replaces its chips: the open one is marked again.
document.addEventListener("htmx:wsAfterMessage", () => {
  if (!opener || opener.isConnected) return;
  opener = document.querySelector(`#turns [data-source="${CSS.escape(opened)}"]`);
  mark();
});
