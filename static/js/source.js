// A source file: the outline as a select, and the lines that its own page opens at.
const lineAt = (hash) => document.getElementsByName(hash.slice(1))[0]?.closest(".line");

document.addEventListener("change", (event) => {
  const select = event.target.closest("[data-outline-jump]");
  if (!select?.value) return;
  const url = select.value;
  select.value = "";
  const line = lineAt(url.slice(url.indexOf("#")));
  if (line) {
    line.scrollIntoView({ block: "start" });
    line.querySelector(".ln")?.focus({ preventScroll: true });
  } else if (select.closest(".viewer--page")) location.assign(url);
  else htmx.ajax("GET", url.split("#")[0], { target: "#source-body", swap: "outerHTML" });
});

// The browser itself goes to the line that the address ends with.
if (!location.hash) document.querySelector(".viewer--page .viewer__code :is(.is-cited, .is-near)")?.scrollIntoView({ block: "center" });
