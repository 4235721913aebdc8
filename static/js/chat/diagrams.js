// Mermaid fences: the source is shown at once, the drawing comes from the server when it is ready.
function draw() {
  for (const figure of document.querySelectorAll("#turns figure[data-diagram=pending]")) {
    figure.dataset.diagram = "drawing";
    figure.setAttribute("aria-busy", "true");
    htmx.ajax("POST", "/ui/chat/diagram", { source: figure, target: figure, swap: "outerHTML", values: { source: figure.querySelector("code").textContent } });
  }
}

draw();
document.addEventListener("htmx:wsAfterMessage", draw);
