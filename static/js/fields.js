// What is typed or chosen while an answer is on its way stays when that replaces the field: its next
// self, under the same id, gets it.
const changes = new Map(); // id of a field → when it was last changed
const sent = new WeakMap(); // request → when
let now = 0;
let kept = [];

document.addEventListener("input", ({ target }) => target.id && changes.set(target.id, (now += 1)));
document.addEventListener("htmx:beforeRequest", ({ detail }) => sent.set(detail.xhr, now));
document.addEventListener("htmx:beforeSwap", ({ detail }) => {
  const ids = [...changes.keys()].filter((id) => changes.get(id) > sent.get(detail.xhr));
  kept = ids.map((id) => document.getElementById(id)).filter(Boolean);
});
document.addEventListener("htmx:afterSwap", () => {
  for (const field of kept) {
    const next = document.getElementById(field.id);
    if (field.isConnected || !next || next.disabled || next.readOnly) continue;
    if (field.matches("[type=checkbox], [type=radio]")) next.checked = field.checked;
    else if (!next.options || [...next.options].some(({ value }) => value === field.value)) next.value = field.value;
    // htmx has focused it, when it had another text.
    if (next === document.activeElement && Number.isInteger(field.selectionStart)) next.setSelectionRange(field.selectionStart, field.selectionEnd);
  }
});
