// Text that is selected stays so when a message of the socket replaces it by the same text.
let held = null; // { id, start, text }: where it is in the text of an element

// Of an answer only the turn itself lasts.
function elementOf(node) {
  const element = node.nodeType === Node.ELEMENT_NODE ? node : node.parentElement;
  return element.closest(".turn") ?? element.closest("[id]");
}

document.addEventListener("htmx:wsBeforeMessage", () => {
  held = null;
  const chosen = getSelection();
  if (chosen.isCollapsed) return;
  const range = chosen.getRangeAt(0);
  const element = elementOf(range.commonAncestorContainer);
  if (!element) return;
  const before = document.createRange();
  before.setStart(element, 0);
  before.setEnd(range.startContainer, range.startOffset);
  held = { id: element.id, start: before.toString().length, text: range.toString() };
});

// The place after so many characters of an element: [text node, offset].
function placeAt(element, characters) {
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  let left = characters;
  while (walker.nextNode() && walker.currentNode.length < left) left -= walker.currentNode.length;
  return [walker.currentNode, left];
}

document.addEventListener("htmx:wsAfterMessage", () => {
  const element = held && getSelection().isCollapsed && document.getElementById(held.id);
  if (!element) return;
  const { start, text } = held;
  const content = element.textContent;
  // The nearest: text before it may have changed.
  const [last, next] = [content.lastIndexOf(text, start), content.indexOf(text, start)];
  const at = last < 0 || (next >= 0 && next - start < start - last) ? next : last;
  if (at >= 0) getSelection().setBaseAndExtent(...placeAt(element, at), ...placeAt(element, at + text.length));
});
