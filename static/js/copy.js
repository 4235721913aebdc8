// Copy buttons: data-copy="text", or data-copy-from="#id" for the text of an element.
import { toast } from "./toasts.js";

async function copy(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  // Not a secure context (plain http on another host): the old way.
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "sr-only";
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy], [data-copy-from]");
  if (!button) return;
  const text = button.dataset.copy ?? document.querySelector(button.dataset.copyFrom).innerText;
  try {
    await copy(text);
    toast(button.dataset.copied ?? "Copied");
  } catch {
    toast("The browser did not allow copying.", { error: true });
  }
});
