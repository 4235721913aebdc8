// What is typed or chosen stays when an answer replaces the field: what came while the answer was on its way,
// and what is in another form than the one that was sent. The field's next self, under the same id, gets it.
const changes = new Map(); // id of a field → when it was last changed
const sent = new WeakMap(); // request → { at, values }: when, and the fields of its form by id
let now = 0;
let kept = []; // [{ field, value }]: `value` is what was sent of it

const formOf = (element) => element.form ?? element.closest("form");

document.addEventListener("input", ({ target }) => target.id && changes.set(target.id, (now += 1)));
document.addEventListener("htmx:beforeRequest", ({ detail: { elt, xhr } }) => {
  const values = Object.fromEntries([...(formOf(elt)?.elements ?? [])].map(({ id, value }) => [id, value]));
  sent.set(xhr, { at: now, values });
});
document.addEventListener("htmx:beforeSwap", ({ detail: { target, xhr, requestConfig } }) => {
  const { at, values } = sent.get(xhr) ?? { at: now, values: {} };
  const isBeside = (field) => target.contains(requestConfig.elt) && field.form !== formOf(requestConfig.elt);
  const fields = [...changes.keys()].map((id) => document.getElementById(id)).filter(Boolean);
  kept = fields.filter((field) => changes.get(field.id) > at || isBeside(field)).map((field) => ({ field, value: values[field.id] ?? "" }));
});
document.addEventListener("htmx:afterSwap", () => {
  // Once: the contents of a stream, which come later, replace none of these.
  for (const { field, value } of kept.splice(0)) {
    const next = document.getElementById(field.id);
    if (field.isConnected || !next || next.disabled || next.readOnly) continue;
    // What was sent is done, and what was typed goes on behind it. A password never comes back.
    const done = next.type !== "password" && !next.options && !next.value && field.value.startsWith(value) ? value.length : 0;
    if (field.matches("[type=checkbox], [type=radio]")) next.checked = field.checked;
    else if (!next.options || [...next.options].some(({ value }) => value === field.value)) next.value = field.value.slice(done);
    // htmx has focused it, when it had another text.
    if (next === document.activeElement && Number.isInteger(field.selectionStart)) next.setSelectionRange(field.selectionStart - done, field.selectionEnd - done);
    if (field.closest("details")?.open) next.closest("details").open = true;
  }
});
