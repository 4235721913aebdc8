// What the question is limited to: chips above the textarea, and `@` in it, which completes.
const box = document.getElementById("scope");
const message = document.getElementById("message");
const list = document.getElementById("scope-options");
const say = document.getElementById("scope-say");
const AT = /(?:^|\s)@(\S*)$/; // the name of a ref has another `@`
let at = null; // { start, text } of the `@…` before the caret while the list is open
let active = -1;
let asked = null; // the text that the server is asked about; one question at a time
let listed = null; // the text that the list is for
let chosen = false; // Enter came before the list for what was typed

const items = () => [...list.querySelectorAll("[data-area]")];
const values = () => [...box.querySelectorAll("[name=scope]:not([disabled])")].map((input) => input.value).filter(Boolean);

function typed() {
  if (message.selectionStart !== message.selectionEnd) return null;
  const found = AT.exec(message.value.slice(0, message.selectionStart));
  return found && { start: message.selectionStart - found[1].length - 1, text: found[1] };
}

function mark(index) {
  const all = items();
  active = all.length ? (index + all.length) % all.length : -1;
  for (const [i, item] of all.entries()) item.setAttribute("aria-selected", i === active);
  if (active < 0) message.removeAttribute("aria-activedescendant");
  else {
    message.setAttribute("aria-activedescendant", all[active].id);
    all[active].scrollIntoView({ block: "nearest" });
  }
}

function close() {
  at = listed = null;
  chosen = false;
  list.parentElement.hidden = true;
  list.replaceChildren();
  message.removeAttribute("aria-activedescendant");
  message.removeAttribute("aria-controls");
}

async function complete() {
  at = typed();
  if (!at) return close();
  if (asked !== null) return;
  while (at && listed !== at.text) {
    asked = at.text;
    const query = new URLSearchParams({ at: asked });
    for (const value of values()) query.append("scope", value);
    await htmx.ajax("GET", `/ui/chat/scope?${query}`, { source: list, target: list, swap: "innerHTML" });
    listed = asked;
  }
  asked = null;
  if (at) show();
  else close();
}

function show() {
  list.parentElement.hidden = false;
  message.setAttribute("aria-controls", list.id);
  mark(0);
  const count = items().length;
  say.textContent = count ? `${count} suggestion${count === 1 ? "" : "s"}, Enter adds one` : "No repository or path matches";
  if (chosen && count) add(items()[0]);
  chosen = false;
}

function append(value, label) {
  const chip = box.querySelector("template").content.firstElementChild.cloneNode(true);
  chip.querySelector("input").value = value;
  chip.querySelector("input").disabled = false;
  chip.querySelector("span").textContent = label;
  chip.querySelector("button").setAttribute("aria-label", `Remove ${label}`);
  box.querySelector(".scope-chips").append(chip);
}

// Limit the next question to areas, each a value and its label.
export function limitTo(areas) {
  box?.querySelector(".scope-chips").replaceChildren();
  if (box) for (const [value, label] of areas) append(value, label);
}

// What the next question is limited to, for `limitTo`.
export const limits = () => [...(box?.querySelectorAll(".scope-chips > li") ?? [])].map((chip) => [chip.querySelector("input").value, chip.textContent.trim()]);

function add(item) {
  const { start, text } = at;
  const label = item.textContent.trim();
  if (!values().includes(item.dataset.area)) append(item.dataset.area, label);
  close();
  message.focus();
  message.setRangeText("", start, start + 1 + text.length, "end");
  message.dispatchEvent(new Event("input", { bubbles: true }));
  say.textContent = `Searches in ${label}`;
}

function remove(button) {
  const chip = button.closest("li");
  const next = chip.nextElementSibling ?? chip.previousElementSibling;
  say.textContent = `${chip.textContent.trim()} removed`;
  chip.remove();
  (next?.querySelector("button") ?? message).focus();
}

if (box) {
  message.addEventListener("input", complete);
  message.addEventListener("blur", () => setTimeout(() => document.activeElement === message || close(), 0));
  // Before the composer's own keys: Enter chooses here, Esc closes the list and stops no answer.
  document.getElementById("composer").addEventListener(
    "keydown",
    (event) => {
      if (event.target !== message || event.isComposing) return;
      if (event.key === "Backspace" && !message.value && values().length) {
        remove(box.querySelector(".scope-chips > :last-child button"));
        message.focus();
      }
      if (!at) return;
      const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (by) mark(active + by);
      else if (event.key === "Enter" && listed !== at.text) chosen = true;
      else if ((event.key === "Enter" || event.key === "Tab") && items()[active]) add(items()[active]);
      else if (event.key === "Escape") close();
      else return;
      event.preventDefault();
      event.stopPropagation();
    },
    true,
  );
  list.addEventListener("pointerdown", (event) => event.preventDefault()); // the textarea keeps the focus
  list.addEventListener("click", (event) => {
    const item = event.target.closest("[data-area]");
    if (item && at) add(item);
  });
  box.addEventListener("click", (event) => {
    const button = event.target.closest("[data-scope-remove]");
    if (button) remove(button);
    if (!event.target.closest("[data-scope-add]")) return;
    message.focus();
    if (!typed()) {
      const before = message.value.slice(0, message.selectionStart);
      message.setRangeText(/\S$/.test(before) ? " @" : "@", message.selectionStart, message.selectionEnd, "end");
    }
    complete();
  });
}
