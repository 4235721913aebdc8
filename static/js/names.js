// A click on a name in code shows where it is defined, called and used. No name is an element of its
// own: the word is read from the text under the pointer. By keyboard, `d` lists the names of the line.
import { onKey } from "./keys.js";
import { currentLine } from "./source.js";

const CODE = "[data-names] .line, .hit .code .line, .snippet .code .line";
const WORD = /[\p{L}_$][\p{L}\p{N}_$]*/gu;
const KEYWORDS = ".k, .kn, .kd, .kr, .kc, .kt, .ow";
const GAP = 4;
const MAX_NAMES = 40; // of a line
let panel = null;

// --- words ---------------------------------------------------------------------------------------

// The texts of a line, without its number: [{ node, start }], and the whole.
function textsOf(line) {
  const walker = document.createTreeWalker(line, NodeFilter.SHOW_TEXT, (node) =>
    node.parentElement.closest(".ln, .line__cite") ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_ACCEPT,
  );
  const parts = [];
  let text = "";
  while (walker.nextNode()) {
    parts.push({ node: walker.currentNode, start: text.length });
    text += walker.currentNode.data;
  }
  return { parts, text };
}

function rangeOf(parts, start, end) {
  const range = document.createRange();
  const at = (offset) => parts.findLast((part) => part.start <= offset);
  const [from, to] = [at(start), at(end - 1)];
  range.setStart(from.node, start - from.start);
  range.setEnd(to.node, end - to.start);
  return range;
}

function caretAt(x, y) {
  const caret = document.caretPositionFromPoint?.(x, y);
  if (caret) return { node: caret.offsetNode, offset: caret.offset };
  const range = document.caretRangeFromPoint?.(x, y);
  return range && { node: range.startContainer, offset: range.startOffset };
}

// The name at a point: { name, line, range }, or null.
function nameAt(event) {
  const line = event.target.closest?.(CODE);
  if (!line || event.target.closest("a, button")) return null;
  const caret = caretAt(event.clientX, event.clientY);
  if (caret?.node?.nodeType !== Node.TEXT_NODE || !line.contains(caret.node)) return null;
  const { parts, text } = textsOf(line);
  const part = parts.find(({ node }) => node === caret.node);
  if (!part) return null;
  const offset = part.start + caret.offset;
  for (const { 0: name, index } of text.matchAll(WORD)) {
    if (index > offset || offset > index + name.length) continue;
    const range = rangeOf(parts, index, index + name.length);
    // The caret is the nearest one, however far from the text the pointer is.
    const isUnder = [...range.getClientRects()].some((box) => event.clientX >= box.left && event.clientX <= box.right);
    if (isUnder && !range.startContainer.parentElement.closest(KEYWORDS)) return { name, line, range };
  }
  return null;
}

function namesOf(line) {
  const { parts, text } = textsOf(line);
  const names = [...text.matchAll(WORD)].filter(({ 0: name, index }) => !rangeOf(parts, index, index + name.length).startContainer.parentElement.closest(KEYWORDS));
  return [...new Set(names.map(([name]) => name))].slice(0, MAX_NAMES);
}

// The file of a line: what the viewer says, or the link above a snippet.
function fileOf(line) {
  const viewer = line.closest("[data-repo]");
  if (viewer) return { repo: viewer.dataset.repo, path: viewer.dataset.path };
  const href = line.closest(".hit, .snippet")?.querySelector("a[href^='/code/']")?.getAttribute("href");
  if (!href) return {};
  const [, , repo, ...path] = href.split(/[?#]/)[0].split("/");
  return { repo: decodeURIComponent(repo), path: decodeURIComponent(path.join("/")) };
}

// --- the panel -----------------------------------------------------------------------------------

function made() {
  if (panel) return panel;
  panel = document.createElement("div");
  Object.assign(panel, { id: "names", className: "names", popover: "auto", tabIndex: -1, role: "dialog" });
  // It drops an older request for a newer one.
  panel.setAttribute("hx-sync", "this:replace");
  panel.setAttribute("hx-disinherit", "hx-sync");
  document.body.append(panel);
  panel.addEventListener("click", (event) => {
    if (event.target.closest("[data-names-close]")) panel.hidePopover();
    const name = event.target.closest("[data-name]");
    if (name) {
      panel.focus({ preventScroll: true }); // the button goes
      load(name.dataset.name, panel.line);
    }
    // Beside an answer the link opens in the pane, on the same page.
    if (event.target.closest("a[data-source]")) panel.hidePopover();
  });
  panel.addEventListener("toggle", (event) => event.newState === "closed" && panel.replaceChildren());
  panel.addEventListener("htmx:afterRequest", (event) => event.target === panel && panel.removeAttribute("aria-busy"));
  return panel;
}

function show(box) {
  made().showPopover();
  const left = Math.min(box.left, innerWidth - panel.offsetWidth - GAP);
  const below = innerHeight - box.bottom - GAP > panel.offsetHeight || box.top < innerHeight / 2;
  // Set from a script, which the content policy allows; nothing of it is in the markup.
  panel.style.left = `${Math.max(GAP, left)}px`;
  panel.style.top = below ? `${box.bottom + GAP}px` : "auto";
  panel.style.bottom = below ? "auto" : `${innerHeight - box.top + GAP}px`;
  panel.style.maxHeight = `${(below ? innerHeight - box.bottom : box.top) - 3 * GAP}px`;
  panel.focus({ preventScroll: true });
}

function load(name, line) {
  const query = new URLSearchParams({ name, ...fileOf(line) });
  const number = Number(line.querySelector(".ln")?.textContent);
  if (number) query.set("line", number);
  panel.setAttribute("aria-label", `Definitions, callers and uses of ${name}`);
  // htmx reports a request that fails.
  htmx.ajax("GET", `/ui/code/name?${query}`, { source: panel, target: panel, swap: "innerHTML" }).catch(() => {});
  panel.setAttribute("aria-busy", "true"); // now that the older request has ended
}

function open(name, line, box) {
  made().replaceChildren(title(name), note("Looking…"));
  panel.line = line;
  show(box);
  load(name, line);
}

function title(text) {
  const head = document.createElement("div");
  head.className = "names__head";
  const heading = document.createElement("h2");
  heading.className = "truncate grow";
  heading.textContent = text;
  head.append(heading);
  return head;
}

function note(text) {
  const line = document.createElement("p");
  line.className = "names__note muted";
  line.textContent = text;
  return line;
}

// The names of a line as buttons: what the pointer does, for the keyboard.
function offer(line) {
  const names = namesOf(line);
  const box = line.querySelector(".ln").getBoundingClientRect();
  if (names.length === 1) return open(names[0], line, box);
  const number = line.querySelector(".ln").textContent;
  const list = document.createElement("div");
  list.className = "names__choice";
  list.append(...names.map((name) => Object.assign(document.createElement("button"), { type: "button", className: "btn btn--sm mono", textContent: name })));
  for (const button of list.children) button.dataset.name = button.textContent;
  made().replaceChildren(title(`Names in line ${number}`), names.length ? list : note("This line has no name."));
  panel.setAttribute("aria-label", `Names in line ${number}`);
  panel.line = line;
  show(box);
  list.firstElementChild?.focus();
}

onKey("d", () => {
  const chosen = getSelection();
  const line = chosen.anchorNode?.parentElement?.closest(CODE);
  const name = chosen.toString().trim();
  if (line && name.match(WORD)?.[0] === name) return open(name, line, chosen.getRangeAt(0).getBoundingClientRect());
  const number = document.activeElement?.closest(".viewer__code .ln")?.textContent ?? currentLine();
  const current = document.querySelector(`#source-body .viewer__code .ln[name="L${number}"]`)?.closest(".line");
  if (!current?.checkVisibility()) return false;
  offer(current);
});

document.addEventListener("click", (event) => {
  if (event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey || !getSelection().isCollapsed) return;
  const found = nameAt(event);
  if (found) open(found.name, found.line, found.range.getBoundingClientRect());
});

// An error of the panel is shown in it.
document.addEventListener("htmx:beforeSwap", (event) => {
  if (!event.detail.target.closest?.("#names")) return;
  event.detail.shouldSwap = true;
  event.detail.isError = false;
});

// The name under the pointer is underlined, where the browser can without an element.
if (globalThis.Highlight) {
  let under = null;
  document.addEventListener("pointermove", (event) => {
    const found = event.pointerType === "mouse" && !event.buttons ? nameAt(event) : null;
    if (found) CSS.highlights.set("name", new Highlight(found.range));
    else CSS.highlights.delete("name");
    under?.classList.remove("on-name");
    under = found?.line;
    under?.classList.add("on-name");
  });
}
