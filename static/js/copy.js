// Copy buttons: data-copy="text", data-copy-from="#id" for the text of an element, or data-copy-url
// for what the server answers there.
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

async function textOf({ copy: text, copyFrom, copyUrl }) {
  if (copyUrl) return (await fetch(copyUrl)).text();
  return text ?? document.querySelector(copyFrom).innerText;
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy], [data-copy-from], [data-copy-url]");
  if (!button) return;
  try {
    await copy(await textOf(button.dataset));
    toast(button.dataset.copied ?? "Copied");
  } catch {
    toast("The browser did not allow copying.", { error: true });
  }
});
