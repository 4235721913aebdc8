// Times of day in the reader's zone: <time datetime="…" data-clock>. The server renders UTC.
function localise(root) {
  for (const time of root.querySelectorAll?.("time[data-clock]") ?? []) {
    const moment = new Date(time.dateTime);
    time.textContent = moment.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
    time.title = moment.toLocaleString();
  }
}

localise(document);
document.addEventListener("htmx:load", (event) => localise(event.target));
document.addEventListener("htmx:wsAfterMessage", () => localise(document));
