// A source file, on its own page or beside an answer: blocks get their colours when the reader comes
// near them, the outline follows, lines are selected, and matches are stepped through.
import { released } from "./press.js";

const NEAR = "1500px 0px"; // how far from the pane a block gets its colours
let body = null; // the file that is shown
let anchor = 0; // the line a selection began at
let pinned = 0; // the line that was gone to last, until it has been seen and is scrolled out of sight
let seen = false; // whether the pinned line has been in sight: the pane may still be on its way to it
let waiting = []; // plain blocks near the pane, the latest last
let busy = false;
const observer = new IntersectionObserver(notice, { rootMargin: NEAR });
// To colour a block takes the server as long as a page: the page comes first.
const loaded = new Promise((resolve) => (document.readyState === "complete" ? resolve() : addEventListener("load", resolve, { once: true })));

const pane = () => body?.querySelector(".viewer__code");
const onPage = () => Boolean(body?.closest(".viewer--page"));
const numberOf = (line) => Number(line.querySelector(".ln").textContent);
const lineOf = (number) => body?.querySelector(`.viewer__code .ln[name="L${number}"]`)?.closest(".line");
const cited = () => [...(pane()?.querySelectorAll(".line.is-cited") ?? [])].map(numberOf);
const span = (first, last, dash) => (first === last ? `${first}` : `${first}${dash}${last}`);

// --- colours -------------------------------------------------------------------------------------

function notice(entries) {
  for (const { target, isIntersecting } of entries) {
    waiting = waiting.filter((block) => block !== target);
    if (isIntersecting) waiting.push(target);
  }
  colour();
}

// One at a time, the latest first: a reader who scrolls fast waits for none of those in between.
async function colour() {
  if (busy) return;
  busy = true;
  while (waiting.length) {
    const block = waiting.pop();
    observer.unobserve(block);
    if (block.isConnected) await replace(block);
  }
  busy = false;
}

async function replace(block) {
  const made = document.createElement("template");
  try {
    const response = await fetch(block.dataset.plain, { headers: { "HX-Request": "true" } });
    if (!response.ok || response.redirected) return;
    made.innerHTML = await response.text();
  } catch {
    return; // plain text can be read as well
  }
  await released();
  if (!block.isConnected) return;
  const lines = [...made.content.children];
  const old = [...block.children];
  const chosen = getSelection();
  // A file that has changed meanwhile, and text that is being selected, stay as they are.
  if (lines.length !== old.length || (!chosen.isCollapsed && chosen.containsNode(block, true))) return;
  lines.forEach((line, at) => (line.className = old[at].className));
  const focused = block.contains(document.activeElement) ? document.activeElement.name : "";
  block.replaceChildren(...lines);
  delete block.dataset.plain;
  if (focused) block.querySelector(`.ln[name="${focused}"]`)?.focus({ preventScroll: true });
  if (anchor) rove(lineOf(anchor));
}

// --- where the reader is -------------------------------------------------------------------------

// The line at a height of the pane, from the boxes of the blocks: lines far away have no boxes.
function lineAt(y) {
  const blocks = [...pane().querySelectorAll(".block")];
  let at = 0;
  for (let low = 0, high = blocks.length - 1; low <= high; ) {
    const middle = (low + high) >> 1;
    if (blocks[middle].getBoundingClientRect().top <= y) [at, low] = [middle, middle + 1];
    else high = middle - 1;
  }
  const block = blocks[at];
  if (!block?.firstElementChild) return 0;
  const box = block.getBoundingClientRect();
  const count = block.children.length;
  const row = Math.floor((y - box.top) / (box.height / count));
  return numberOf(block.firstElementChild) + Math.min(count - 1, Math.max(0, row));
}

// A third from the top, as citations open; at the ends of the file, where the pane cannot scroll, nearer to them.
export function currentLine() {
  const code = pane();
  if (!code) return 0;
  const box = code.getBoundingClientRect();
  const line = pinned && lineOf(pinned)?.getBoundingClientRect();
  const isInSight = line && line.bottom > box.top && line.top < box.bottom;
  if (isInSight) seen = true;
  if (isInSight || (line && !seen)) return pinned;
  pinned = 0;
  const third = code.clientHeight / 3;
  const left = code.scrollHeight - code.clientHeight - code.scrollTop;
  const rest = code.clientHeight - third;
  return lineAt(box.top + (left < rest && code.scrollTop ? code.clientHeight - left : Math.min(third, code.scrollTop)) - 1);
}

function pin(number) {
  pinned = number;
  seen = false;
}

function follow() {
  const line = currentLine();
  const links = [...body.querySelectorAll(".outline a")];
  const current = links.findLast((link) => Number(link.dataset.first) <= line && line <= Number(link.dataset.last));
  const name = current?.dataset.symbol ?? "";
  for (const link of links) if (link !== current) link.removeAttribute("aria-current");
  const label = body.querySelector("[data-current-symbol]");
  if (label) label.textContent = name;
  const option = body.querySelector("[data-outline-label]");
  if (option) option.textContent = name || "Outline";
  if (!current || current.hasAttribute("aria-current")) return;
  current.setAttribute("aria-current", "location");
  const outline = current.closest(".outline");
  const [box, frame] = [current.getBoundingClientRect(), outline.getBoundingClientRect()];
  if (box.top < frame.top || box.bottom > frame.bottom) outline.scrollTop += box.top - frame.top - frame.height / 2;
}

// Go to a line, a third from the top; false if it is not in the window.
export function reveal(number, { focus = false } = {}) {
  const line = lineOf(number);
  if (!line) return false;
  const code = pane();
  code.scrollTop += line.getBoundingClientRect().top - code.getBoundingClientRect().top - code.clientHeight / 3;
  pin(number);
  rove(line);
  if (focus) line.querySelector(".ln").focus({ preventScroll: true });
  follow();
  return true;
}

// --- selected lines ------------------------------------------------------------------------------

// One line number can be reached with Tab, the others with the arrow keys.
function rove(line) {
  for (const other of pane().querySelectorAll('.ln[tabindex="0"]')) other.tabIndex = -1;
  const number = line?.querySelector(".ln");
  if (number) number.tabIndex = 0;
}

export function permalink(lines = cited()) {
  const query = lines.length ? `lines=${span(lines[0], lines.at(-1), "-")}` : "";
  const url = body.dataset.permalink;
  return query ? `${url}${url.includes("?") ? "&" : "?"}${query}` : url;
}

function select(first, last) {
  for (const line of pane().querySelectorAll(".line.is-cited, .line.is-near")) line.classList.remove("is-cited", "is-near");
  pane().querySelector(".line__cite")?.remove();
  for (let number = first; number <= last; number += 1) lineOf(number)?.classList.add("is-cited");
  body.querySelector("[data-cited]").textContent = `${first === last ? "Line" : "Lines"} ${span(first, last, "–")}`;
  tell(first, last);
}

// What the buttons copy and open.
function tell(first, last) {
  const { repo, path, editor } = body.dataset;
  const copy = body.querySelector("[data-copy-path]");
  if (copy && first) copy.dataset.copy = `${repo}/${path}:${span(first, last, "-")}`;
  const link = body.querySelector("[data-copy-permalink]");
  if (link) link.dataset.copy = new URL(first ? permalink([first, last]) : permalink([]), location).href;
  const open = body.querySelector("[data-open-editor]");
  if (open && first) open.href = editor.replace("{line}", first);
}

function choose(number, { extend = false, push = false } = {}) {
  if (!extend || !anchor) anchor = number;
  const [first, last] = [Math.min(anchor, number), Math.max(anchor, number)];
  select(first, last);
  pin(number);
  rove(lineOf(number));
  follow();
  if (!onPage()) return;
  const url = permalink([first, last]);
  const find = body.dataset.find ? `&${body.dataset.find}` : "";
  history[push ? "pushState" : "replaceState"](history.state, "", url + find);
}

function chooseFromAddress() {
  const [first, last] = (new URL(location).searchParams.get("lines") ?? "").split("-").map(Number);
  if (!first || !reveal(first)) return;
  anchor = first;
  select(first, last || first);
}

// --- matches -------------------------------------------------------------------------------------

export function stepMatch(by) {
  const matches = (body?.dataset.matches ?? "").split(",").filter(Boolean).map(Number);
  if (!matches.length) return false;
  const line = currentLine();
  const at = by > 0 ? matches.findIndex((number) => number > line) : matches.findLastIndex((number) => number < line);
  const index = at < 0 ? (by > 0 ? 0 : matches.length - 1) : at;
  const number = matches[index];
  body.querySelector("[data-match-count]").textContent = `${index + 1} of ${matches.length} matches`;
  if (reveal(number)) {
    choose(number);
    return true;
  }
  if (onPage()) location.assign(`${permalink([number])}&${body.dataset.find}#L${number}`);
  else load(new URLSearchParams({ repo: body.dataset.repo, path: body.dataset.path, start: number, end: number }) + `&${body.dataset.find}`);
  return true;
}

const load = (query) => htmx.ajax("GET", `/ui/retrieval/source?${query}`, { target: "#source-body", swap: "outerHTML" });

// --- events --------------------------------------------------------------------------------------

function goTo(url, { push = false } = {}) {
  const number = Number(url.hash.slice(2));
  if (!reveal(number, { focus: true })) return false;
  if (push) {
    const [first, last] = (url.searchParams.get("lines") ?? `${number}`).split("-").map(Number);
    anchor = first;
    select(first, last || first);
    history.pushState(history.state, "", url);
  }
  return true;
}

document.addEventListener("click", (event) => {
  if (!body || event.ctrlKey || event.metaKey || event.button) return;
  const number = event.target.closest(".viewer__code .ln");
  const step = event.target.closest("[data-match]");
  if (step) stepMatch(Number(step.dataset.match));
  if (number && body.contains(number)) {
    event.preventDefault();
    choose(Number(number.textContent), { extend: event.shiftKey });
    if (event.shiftKey) getSelection().removeAllRanges();
    return;
  }
  const link = event.target.closest("a[href*='#L']");
  if (!link || event.shiftKey || event.defaultPrevented) return;
  const url = new URL(link.href);
  const isOutline = link.closest(".outline");
  // The same file: the reader is taken to the line, without loading it again.
  const isHere = onPage() && url.pathname === location.pathname && url.pathname === new URL(body.dataset.permalink, location).pathname;
  if ((isOutline && link.getAttribute("href").startsWith("#")) || (isHere && !isOutline)) {
    if (goTo(url, { push: !isOutline })) event.preventDefault();
  }
});

document.addEventListener("keydown", (event) => {
  const number = event.target.closest?.(".viewer__code .ln");
  const by = { ArrowUp: -1, ArrowDown: 1 }[event.key];
  if (!number || !by) return;
  const next = Number(number.textContent) + by;
  if (!lineOf(next)) return;
  event.preventDefault();
  if (event.shiftKey) {
    anchor ||= Number(number.textContent);
    choose(next, { extend: true });
  } else rove(lineOf(next));
  const link = lineOf(next).querySelector(".ln");
  link.focus({ preventScroll: true });
  link.scrollIntoView({ block: "nearest" });
});

document.addEventListener("change", (event) => {
  const jump = event.target.closest("[data-outline-jump]");
  if (!jump?.value) return;
  const { value } = jump;
  const { fragment } = jump.selectedOptions[0].dataset;
  jump.value = "";
  if (goTo(new URL(value, location))) return;
  if (onPage()) location.assign(value);
  else load(new URL(fragment, location).searchParams);
});

let frame = 0;
document.addEventListener(
  "scroll",
  (event) => {
    if (!body || event.target !== pane()) return;
    frame ||= requestAnimationFrame(() => {
      frame = 0;
      if (body?.isConnected) follow();
    });
  },
  true,
);

// The first and the last block may be shorter than what the stylesheet reserves.
function sizeEnds() {
  const blocks = [...body.querySelectorAll(".block")];
  for (const block of [blocks[0], blocks.at(-1)]) if (block) block.style.containIntrinsicBlockSize = `auto ${block.children.length * 1.25}rem`;
}

function attach() {
  const now = document.getElementById("source-body");
  if (now === body) return;
  body = now?.dataset.permalink ? now : null;
  observer.disconnect();
  waiting = [];
  anchor = 0;
  pin(0);
  if (!body) return;
  // A line of rendered Markdown is in its source.
  const line = Number(location.hash.slice(2));
  if (line && onPage() && body.querySelector(".document")) location.replace(`${permalink([line])}#L${line}`);
  const shown = body;
  loaded.then(() => {
    if (body === shown) for (const block of body.querySelectorAll("[data-plain]")) observer.observe(block);
  });
  sizeEnds();
  const lines = cited();
  [anchor = 0] = lines;
  pin(anchor || Number(location.hash.slice(2)) || 0);
  rove(lineOf(anchor) ?? pane().querySelector(".line"));
  tell(anchor, lines.at(-1) ?? 0);
  follow();
}
document.addEventListener("htmx:load", attach);
document.addEventListener("htmx:afterSettle", attach);
addEventListener("popstate", () => onPage() && chooseFromAddress());
attach();
// The browser itself goes to the line that the address ends with.
if (onPage() && !location.hash) pane().querySelector(":is(.is-cited, .is-near)")?.scrollIntoView({ block: "center" });
