// The outline of a source file, as a select: go to the chosen line, or load the window around it.
document.addEventListener("change", (event) => {
  const select = event.target.closest("[data-outline-jump]");
  if (!select?.value) return;
  const url = select.value;
  select.value = "";
  const line = document.getElementById(url.slice(url.indexOf("#") + 1));
  if (line) {
    line.scrollIntoView({ block: "start" });
    line.querySelector(".ln")?.focus({ preventScroll: true });
  } else if (select.closest(".viewer--page")) location.assign(url);
  else htmx.ajax("GET", url.split("#")[0], { target: "#source-body", swap: "outerHTML" });
});
