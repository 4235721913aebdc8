// The menu of a conversation, in the list and in the top bar; renaming and deleting.
import { openDialog } from "../layers.js";

const menu = document.getElementById("convo-menu");
const rename = document.getElementById("rename-dialog");
const remove = document.getElementById("delete-dialog");
const current = () => document.getElementById("composer").elements.c.value;
const home = () => document.querySelector("[data-new]").href;
const GAP = 4;
let opener = null;

function place() {
  const box = opener.getBoundingClientRect();
  const left = Math.min(box.left, innerWidth - menu.offsetWidth - GAP);
  const below = box.bottom + GAP;
  const fits = below + menu.offsetHeight < innerHeight;
  // Set from a script, which the content policy allows; nothing of it is in the markup.
  menu.style.left = `${Math.max(GAP, left)}px`;
  menu.style.top = `${fits ? below : Math.max(GAP, box.top - GAP - menu.offsetHeight)}px`;
}

addEventListener("resize", () => menu.matches(":popover-open") && place());

async function openMenu(button) {
  opener = button;
  menu.replaceChildren();
  // The menu drops an older request for a newer one. htmx reports a request that fails.
  const address = `/ui/chat/actions?c=${encodeURIComponent(button.dataset.convoMenu)}`;
  await htmx.ajax("GET", address, { source: menu, target: menu, swap: "innerHTML" }).catch(() => {});
  if (opener !== button || !menu.children.length) return;
  menu.showPopover();
  place();
  menu.firstElementChild.focus();
}

function askName(id, title) {
  rename.querySelector("[name=c]").value = id;
  rename.querySelector("[name=title]").value = title;
  openDialog(rename);
  rename.querySelector("[name=title]").select();
}

menu.addEventListener("toggle", (event) => {
  const open = event.newState === "open";
  opener?.setAttribute("aria-expanded", open);
  if (!open && menu.contains(document.activeElement)) opener?.focus();
});
menu.addEventListener("keydown", (event) => {
  const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!by) return;
  const items = [...menu.children];
  items[(items.indexOf(document.activeElement) + by + items.length) % items.length].focus();
  event.preventDefault();
});

document.addEventListener("click", (event) => {
  const at = (selector) => event.target.closest(selector);
  const button = at("[data-convo-menu]");
  if (button) openMenu(button);
  const item = at("#convo-menu > *");
  if (!item) return;
  menu.hidePopover();
  if (item.dataset.rename) askName(item.dataset.rename, item.dataset.title);
  if (item.dataset.delete) {
    remove.querySelector("[name=c]").value = item.dataset.delete;
    remove.querySelector("[data-delete-title]").textContent = item.dataset.title;
    openDialog(remove);
  }
});

document.addEventListener("keydown", (event) => {
  if (event.key !== "F2" || document.getElementById("more-actions").hidden) return;
  event.preventDefault();
  askName(current(), document.getElementById("chat-title").textContent);
});

// The open conversation changed in a way that the whole page shows.
document.addEventListener("chat:deleted", (event) => {
  if (event.detail.ids.includes(current())) location.assign(home());
});
document.addEventListener("chat:changed", (event) => {
  if (event.detail.ids.includes(current())) location.reload();
});
// The title of this page, whoever renamed it.
const title = document.getElementById("chat-title");
const naming = () => (document.title = `${document.getElementById("chat-title").textContent} · codeinfo`);
new MutationObserver(naming).observe(title.parentElement, { childList: true, subtree: true, characterData: true });
