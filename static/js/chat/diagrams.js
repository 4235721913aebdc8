// Mermaid fences: the source is shown at once, the drawing comes from the server when it is ready.
// One after another, as the server draws only a few at once for one user.
const TRIES = 20;
let drawing = false;

async function draw() {
  if (drawing) return;
  drawing = true;
  let figure;
  while ((figure = document.querySelector("#turns figure[data-diagram=pending]"))) {
    figure.dataset.diagram = "drawing";
    figure.setAttribute("aria-busy", "true");
    await drawn(figure);
  }
  drawing = false;
}

async function drawn(figure) {
  const values = { source: figure.querySelector("code").textContent };
  for (let tries = 0; tries < TRIES && figure.isConnected; tries += 1) {
    let wait = 0;
    const busy = (event) => {
      wait = Number(event.detail.xhr.getResponseHeader("Retry-After"));
      if (wait) event.stopPropagation(); // no message: it is tried again
    };
    figure.addEventListener("htmx:responseError", busy, { once: true });
    await htmx.ajax("POST", "/ui/chat/diagram", { source: figure, target: figure, swap: "outerHTML", values }).catch(() => {});
    figure.removeEventListener("htmx:responseError", busy);
    if (!wait) return;
    await new Promise((resolve) => setTimeout(resolve, wait * 1000));
  }
}

draw();
document.addEventListener("htmx:wsAfterMessage", draw);

// Zoom: a drawing fits its column at first; beyond that it scrolls in a box of its own.
const STEP = 1.25;
const MOST = 8; // times its own size
const LEAST = 0.1;

function zoom(figure, how) {
  const view = figure.querySelector(".diagram__view");
  const images = [...view.querySelectorAll("img")];
  const shown = images.find((image) => image.offsetWidth) ?? images[0];
  const before = shown.offsetWidth;
  const own = shown.width && Number(shown.getAttribute("width"));
  const width = Math.min(own * MOST, Math.max(own * LEAST, before * (how === "in" ? STEP : 1 / STEP)));
  view.classList.toggle("is-zoomed", how !== "fit");
  for (const image of images) image.style.width = how === "fit" ? "" : `${width}px`;
  if (how === "fit") return;
  // The middle stays where it is.
  const factor = shown.offsetWidth / before;
  view.scrollLeft = (view.scrollLeft + view.clientWidth / 2) * factor - view.clientWidth / 2;
  view.scrollTop = (view.scrollTop + view.clientHeight / 2) * factor - view.clientHeight / 2;
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-zoom]");
  if (button) zoom(button.closest("figure"), button.dataset.zoom);
});
document.addEventListener("keydown", (event) => {
  const how = { "+": "in", "=": "in", "-": "out", 0: "fit" }[event.key];
  if (!how || event.ctrlKey || event.metaKey || !event.target.matches(".diagram__view")) return;
  event.preventDefault();
  zoom(event.target.closest("figure"), how);
});
