// The search page: a name is looked up as it is typed; the arrow keys go from the field to the rows.
import { step } from "./rows.js";

const PAUSE = 200; // after the last letter
const form = document.getElementById("search-form");
const field = form.elements.q;
const symbols = () => form.elements.mode.value === "symbols";
let timer = 0;
let live = false;

field.addEventListener("input", () => {
  clearTimeout(timer);
  if (!symbols()) return;
  timer = setTimeout(() => {
    live = true;
    form.requestSubmit();
  }, PAUSE);
});
// What is looked up while typing replaces the address; each letter is not a page to go back to.
form.addEventListener("htmx:configRequest", (event) => {
  clearTimeout(timer);
  if (live) event.detail.headers["X-Live"] = "1";
  live = false;
});
field.addEventListener("keydown", (event) => {
  if (event.key === "ArrowDown" && step(1)) event.preventDefault();
});
document.addEventListener("change", (event) => {
  if (event.target.name === "mode") field.placeholder = event.target.dataset.placeholder;
});
