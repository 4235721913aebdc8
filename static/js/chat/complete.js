// Completion in the composer: what is typed before the caret opens a listbox above it, whose options
// the server draws.
const form = document.getElementById("composer");
const message = document.getElementById("message");
const say = document.getElementById("completion-say");

// find: what is completed, { start, text }, or null. address: of the options for it. choose: called
// with an option and with what was completed. verb: what Enter does with an option. none: said when
// nothing matches; without it the list closes then, and Enter is the composer's again.
export function completion({ list, find, address, choose, verb, none }) {
  let at = null; // what is completed while the list is open
  let active = -1;
  let requested = null; // the text of the request under way; one at a time
  let listed = null; // the text that the list is for
  let chosen = false; // Enter came before the list for what was typed

  const items = () => [...list.querySelectorAll("[role=option]:not([aria-disabled])")];

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
    const was = at;
    at = find();
    if (!at) return was && close();
    if (requested !== null) return;
    while (at && listed !== at.text) {
      requested = at.text;
      // htmx reports a request that fails, and what is typed next asks again.
      await htmx.ajax("GET", address(requested), { source: list, target: list, swap: "innerHTML" }).catch(() => (at = null));
      listed = requested;
    }
    requested = null;
    if (at) show();
    else close();
  }

  function show() {
    const enters = chosen;
    chosen = false;
    const count = items().length;
    if (!count && !none) {
      close();
      // The key goes where it would have gone.
      if (enters) message.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true, cancelable: true }));
      return;
    }
    list.parentElement.hidden = false;
    message.setAttribute("aria-controls", list.id);
    mark(0);
    say.textContent = count ? `${count} suggestion${count === 1 ? "" : "s"}, Enter ${verb} one` : none;
    if (enters && count) pick(items()[0]);
  }

  function pick(item) {
    const what = at;
    message.focus();
    choose(item, what);
    close();
  }

  message.addEventListener("input", complete);
  message.addEventListener("blur", () => setTimeout(() => document.activeElement === message || close(), 0));
  // Before the composer's own keys: Enter chooses here, Esc closes the list and stops no answer.
  form.addEventListener(
    "keydown",
    (event) => {
      if (!at || event.target !== message || event.isComposing) return;
      const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (by) mark(active + by);
      else if (event.key === "Enter" && listed !== at.text) chosen = true;
      else if ((event.key === "Enter" || event.key === "Tab") && items()[active]) pick(items()[active]);
      else if (event.key === "Escape") close();
      else return;
      event.preventDefault();
      event.stopPropagation();
    },
    true,
  );
  list.addEventListener("pointerdown", (event) => event.preventDefault()); // the textarea keeps the focus
  list.addEventListener("click", (event) => {
    const item = event.target.closest("[role=option]:not([aria-disabled])");
    if (item && at) pick(item);
  });
  return complete;
}

// Put a text in place of what is at the caret.
export function insert(text, start, end) {
  message.setRangeText(text, start, end, "end");
  message.dispatchEvent(new Event("input", { bubbles: true }));
}
