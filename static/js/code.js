// The code browser: keys of its pages, and the tree that stands at the file.
import { onKey } from "./keys.js";
import { stepMatch } from "./source.js";

const press = (selector) => {
  const control = document.querySelector(selector);
  control?.click();
  return Boolean(control);
};

onKey("[", () => stepMatch(-1));
onKey("]", () => stepMatch(1));
onKey("y", () => press("[data-copy-permalink]"));
onKey("o", () => press("[data-open-editor]"));

const files = document.getElementById("files");
const current = files?.querySelector('[aria-current="page"]');
if (current) files.scrollTop += current.getBoundingClientRect().top - files.getBoundingClientRect().top - files.clientHeight / 3;
