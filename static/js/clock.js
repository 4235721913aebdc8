// Times of day in the reader's zone: <time datetime="…" data-clock>, or data-clock="ms" to the
// millisecond and, if it is another day, with the day. The server renders UTC.
const TO_SECONDS = { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false };

function spelled(moment, exact) {
  if (!exact) return moment.toLocaleTimeString([], TO_SECONDS);
  const today = moment.toDateString() === new Date().toDateString();
  const day = today ? "" : `${moment.toLocaleDateString([], { day: "numeric", month: "short" })} `;
  return day + moment.toLocaleTimeString("en-GB", { ...TO_SECONDS, fractionalSecondDigits: 3 });
}

function localise(root) {
  for (const time of root.querySelectorAll?.("time[data-clock]") ?? []) {
    const moment = new Date(time.dateTime);
    time.textContent = spelled(moment, time.dataset.clock === "ms");
    time.title = moment.toLocaleString();
  }
}

localise(document);
document.addEventListener("htmx:load", (event) => localise(event.target));
document.addEventListener("htmx:wsAfterMessage", () => localise(document));
