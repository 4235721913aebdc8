// The source viewer: a citation opens its lines beside the answer (or over it, on a narrow window),
// focus goes to the code, and Esc brings it back to the chip.
import { closeAnyLayer, openLayer } from "../layers.js";
import { onKey } from "../keys.js";
import { stop } from "./composer.js";

const split = document.getElementById("split");
const viewer = document.getElementById("source");
const tabs = document.querySelector("[data-viewer-tabs]");
const toggle = document.querySelector("[data-viewer-toggle]");
const narrow = matchMedia("(max-width: 1180px)");
const KEYS = ["repo", "path", "start", "end"]; // of a citation, in the address of the page
// A cookie: the reader closed the viewer, which opens on request only until the browser is closed.
const CLOSED = "viewer=closed";
let opener = null; // the chip that was followed
let opened = ""; // its address
let chosen = false; // by the reader, and not by itself
let depth = history.state?.depth ?? 0; // history entries since the viewer was closed
let closing = false; // on the way back through them
let loading = new AbortController();
const heads = new WeakMap(); // what each head of an answer was drawn from
const written = new WeakMap(); // where a chip leads in the answer as it was written

const isOpen = () => !viewer.hidden;
const placeOf = (link) => ({ href: link.getAttribute("href"), source: link.dataset.source });
const sources = (turn) => [...(turn?.querySelectorAll(".source-row[data-cite]") ?? [])];
const turns = () => [...document.querySelectorAll("#turns > .turn")];
const conversation = () => new URL(location).searchParams.get("c");

// --- the address of the page: it names the open citation, so that it can be shared ---------------

const key = (params) => KEYS.map((name) => params.get(name) ?? "").join("\n");
const keyOf = (source) => key(new URL(source, location).searchParams);

// The address of this page with a citation, or with none.
function addressOf(source) {
  const url = new URL(location);
  const cited = new URL(source || "#", location).searchParams;
  for (const name of KEYS) {
    url.searchParams.delete(name);
    if (source && cited.has(name)) url.searchParams.set(name, cited.get(name));
  }
  url.hash = "";
  return url;
}

function write(source, { replace = false } = {}) {
  const url = addressOf(source);
  if (url.href === location.href) return;
  if (replace) {
    history.replaceState({ depth }, "", url);
    return;
  }
  // htmx answers Back to an entry of its own by loading the page anew; this one is restored here.
  if (history.state?.htmx) history.replaceState({ depth }, "");
  history.pushState({ depth: (depth += 1) }, "", url);
}

// What the address names: the chip or row of that citation, or a citation that no answer has.
function named() {
  const params = new URL(location).searchParams;
  if (!params.get("repo") || !params.get("path")) return null;
  const chips = [...document.querySelectorAll("#turns [data-source]")];
  const chip = chips.findLast((one) => keyOf(one.dataset.source) === key(params));
  if (chip) return { chip, source: chip.dataset.source };
  const query = new URLSearchParams(KEYS.filter((name) => params.has(name)).map((name) => [name, params.get(name)]));
  return { chip: null, source: `/ui/retrieval/source?${query}` };
}

// --- opening and closing -------------------------------------------------------------------------

function show({ layer = true } = {}) {
  const was = isOpen();
  viewer.hidden = false;
  toggle.setAttribute("aria-pressed", "true");
  if (narrow.matches && layer) openLayer(viewer, opener ?? toggle);
  else if (!was) split.classList.remove("split--solo");
}

function put() {
  closeAnyLayer(viewer);
  viewer.hidden = true;
  split.classList.add("split--solo");
  toggle.setAttribute("aria-pressed", "false");
  mark();
}

// The reader closes it: the focus and the history go back to where they were.
function hide() {
  if (!isOpen()) return false;
  put();
  (opener?.isConnected && opener.checkVisibility() ? opener : toggle).focus();
  document.cookie = `${CLOSED}; path=/; samesite=lax`;
  closing = depth > 0;
  if (closing) history.go(-depth);
  else write("", { replace: true });
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
  const first = code?.querySelector(".line:is(.is-cited, .is-near)");
  if (!first) return;
  code.scrollTop += first.getBoundingClientRect().top - code.getBoundingClientRect().top - code.clientHeight / 3;
  const row = sources(opener?.closest(".turn")).find((one) => one.dataset.source === opened);
  const chip = row?.querySelector(".cite").cloneNode(true);
  if (!chip) return;
  chip.classList.add("line__cite");
  chip.setAttribute("aria-current", "true");
  first.prepend(chip);
}

// What an answer has lost is not what stands at its lines now.
function sayLost() {
  const row = opener?.closest(".turn")?.querySelector(`.standing [data-lost][data-source="${CSS.escape(opened)}"]`);
  const lines = viewer.querySelector("[data-cited]");
  if (!row || !lines || lines.dataset.lost) return;
  lines.dataset.lost = row.dataset.lost;
  lines.append(`, ${row.dataset.lost}`);
}

// `chip` is null for a citation that only the address names.
async function load(chip, source, { focus = true } = {}) {
  opener = chip;
  opened = source;
  show();
  drawTabs(chip?.closest(".turn"));
  mark();
  check(chip?.closest(".turn"));
  loading.abort(); // the one opened last is shown, whichever comes first
  const { signal } = (loading = new AbortController());
  const text = await fetchPart(source, signal);
  if (text === null) return;
  htmx.swap("#source-body", text, { swapStyle: "outerHTML", swapDelay: 0, settleDelay: 0 });
  scrollToLines();
  sayLost();
  if (focus) viewer.querySelector(".viewer__code")?.focus({ preventScroll: true });
}

// An unknown or vanished file comes with its own part and a status: it is shown as well.
async function fetchPart(source, signal) {
  try {
    const response = await fetch(source, { headers: { "HX-Request": "true" }, signal });
    if (!response.redirected) return await response.text();
    location.reload(); // to the page that asks for a login
  } catch (error) {
    if (!signal.aborted) htmx.trigger(document.body, "htmx:sendError", { error });
  }
  return null;
}

function open(chip) {
  chosen = true;
  document.cookie = `${CLOSED}; path=/; max-age=0; samesite=lax`;
  write(chip.dataset.source);
  load(chip, chip.dataset.source);
}

// On a wide screen the first citation of the last answer opens by itself, and takes no focus.
function openFirst() {
  const turn = turns().at(-1);
  const row = sources(turn)[0];
  if (!row || turn.dataset.status === "running" || narrow.matches || document.cookie.includes(CLOSED)) return;
  if (isOpen() && (chosen || opened === row.dataset.source)) return;
  const chip = turn.querySelector(`.prose [data-source="${CSS.escape(row.dataset.source)}"]`) ?? row;
  write(row.dataset.source, { replace: true });
  load(chip, row.dataset.source, { focus: false });
}

// The viewer shows what the address names.
function follow({ focus = true } = {}) {
  const place = named();
  if (!place) return isOpen() && put();
  if (isOpen() && opened && keyOf(opened) === keyOf(place.source)) return;
  chosen = true;
  load(place.chip, place.source, { focus });
}

let current = conversation();
document.addEventListener("htmx:pushedIntoHistory", () => {
  current = conversation();
  depth = 0;
  if (isOpen() && opened) write(opened, { replace: true });
});
addEventListener("popstate", (event) => {
  if (event.state?.htmx) return; // htmx loads the page
  if (conversation() !== current) return location.reload();
  depth = event.state?.depth ?? 0;
  if (closing) write("", { replace: true });
  else follow();
  closing = false;
});

// Where cited lines are is looked up whenever a citation opens: its file may have been ingested
// since. The head of the answer, which says what still holds, may be out of sight.
function check(turn) {
  const head = turn?.querySelector(".standing");
  // htmx reports a request that fails.
  if (head) htmx.ajax("GET", head.getAttribute("hx-get"), { source: head }).catch(() => {});
}

// Without news, the list that the reader opened stays as it is.
document.addEventListener("htmx:beforeSwap", (event) => {
  const { target, serverResponse } = event.detail;
  if (!target.matches(".standing")) return;
  event.detail.shouldSwap &&= heads.get(target) !== serverResponse;
  heads.set(target, serverResponse);
});

// Cited lines that are elsewhere in what is ingested now are opened there.
document.addEventListener("htmx:afterSwap", ({ target }) => {
  if (!target.matches?.(".standing")) return;
  const moved = new Map([...target.querySelectorAll("[data-was]")].map((row) => [row.dataset.was, row]));
  const turn = target.closest(".turn");
  let now = opened;
  for (const chip of turn.querySelectorAll("[data-source]")) {
    if (target.contains(chip)) continue;
    const { source } = chip.dataset;
    if (!written.has(chip)) written.set(chip, placeOf(chip));
    const row = moved.get(written.get(chip).source);
    const place = row ? placeOf(row) : written.get(chip);
    if (source === opened) now = place.source;
    chip.setAttribute("href", place.href); // the `href` of a node of a picture is read-only
    chip.dataset.source = place.source;
  }
  if (now === opened) sayLost();
  if (now === opened || (opener?.closest(".turn") ?? turn) !== turn) return;
  write(now, { replace: true });
  load(opener, now, { focus: false });
});

// The same for the links above and below the lines.
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
  if (event.target.closest("[data-viewer-toggle]")) flip();
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

function flip() {
  if (isOpen()) hide();
  else if (opener?.isConnected) open(opener);
  else show();
}

function step(by) {
  const turn = opener?.closest(".turn") ?? turns().findLast((one) => sources(one).length);
  const rows = sources(turn);
  if (!rows.length) return false;
  const at = rows.findIndex((row) => row.dataset.source === opened);
  open(rows[at < 0 ? 0 : (at + by + rows.length) % rows.length]);
  return true;
}

onKey("]", () => step(1));
onKey("[", () => step(-1));
onKey("\\", flip);

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
// What is a column on a wide screen is a layer on a narrow one.
narrow.addEventListener("change", () => isOpen() && put());
document.addEventListener("htmx:wsAfterMessage", () => {
  // The answer's final form replaces its chips: the open one is marked again.
  if (opener && !opener.isConnected) {
    opener = document.querySelector(`#turns [data-source="${CSS.escape(opened)}"]`);
    mark();
  }
  openFirst();
});
// The server opens it beside an answer with citations, and does not know the width of the window.
if (isOpen() && narrow.matches) put();
if (named()) follow({ focus: false });
else openFirst();
