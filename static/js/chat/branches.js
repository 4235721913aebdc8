// Versions of a question or of an answer: a choice follows its branch, in every open tab.
import { turns } from "./stream.js";

const id = document.getElementById("composer").elements.c.value;
let wanted = null; // { turn, label } of the version that was chosen, until it is on the page

const shown = (turn) => turns().find((article) => article.dataset.turn === turn || article.querySelector(`[data-question="${CSS.escape(turn)}"]`));

function follow(turn) {
  htmx.ajax("POST", "/ui/chat/branch", { source: "#turns", swap: "none", values: { c: id, turn } });
}

function show() {
  const article = wanted && shown(wanted.turn);
  if (!article) return;
  const { label } = wanted;
  wanted = null;
  article.scrollIntoView({ block: "nearest" });
  const versions = [...article.querySelectorAll(".versions")].find((group) => !label || group.ariaLabel === label);
  if (!versions || !label) return;
  versions.querySelector("button:not(:disabled)").focus();
  document.getElementById("say").textContent = `Version ${versions.querySelector(".num").textContent.replace("/", " of ")}`;
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-branch]");
  if (!button) return;
  wanted = { turn: button.dataset.branch, label: button.closest(".versions").ariaLabel };
  follow(wanted.turn);
});
document.addEventListener("htmx:wsAfterMessage", show);

// A hit of the search: its turn may be on a branch that is not followed.
const address = new URL(location.href);
const hit = address.searchParams.get("turn");
if (hit) {
  address.searchParams.delete("turn");
  history.replaceState(history.state, "", address);
  wanted = { turn: hit, label: "" };
  if (shown(hit)) show();
  else follow(hit);
}
