// The Logs page: lines open and close, the list stays short, and the page says whether it is live.
const MOST = 50;
const form = document.getElementById("log-filters");
const badge = document.querySelector("[data-log-state]");
const lost = document.querySelector("[data-log-lost]");
const held = document.querySelector("[data-log-held]");
const REDRAW_MS = 2000; // what the chart counts comes in bursts, and may be 20,000 lines
let redraw;
const STATES = {
  live: { text: "Live", style: "badge badge--ok" },
  paused: { text: "Paused", style: "badge" },
  lost: { text: "Reconnecting…", style: "badge badge--warn" },
};

function show(state) {
  badge.textContent = STATES[state].text;
  badge.className = STATES[state].style;
  lost.hidden = state !== "lost";
}

const isLive = () => form.querySelector("[data-log-live]").checked;
const openLines = () => document.querySelectorAll('#log-list .expander[aria-expanded="true"]');
const refresh = () => form.requestSubmit();

function toggle(button, open) {
  button.setAttribute("aria-expanded", open);
  button.closest("tr").classList.toggle("is-open", open);
  document.getElementById(button.getAttribute("aria-controls")).hidden = !open;
}

function release() {
  held.hidden = true;
  refresh();
}

document.addEventListener("click", (event) => {
  const button = event.target.closest(".expander");
  if (button) {
    toggle(button, button.getAttribute("aria-expanded") !== "true");
    if (!openLines().length && !held.hidden) release();
  }
  if (event.target.closest("[data-log-release]")) release();
  const older = event.target.closest("[data-log-older]");
  if (older) {
    // Lines came since the link was drawn, and the last ones went.
    const last = [...document.querySelectorAll("#log-list [data-entry]")].at(-1);
    const address = new URL(older.href);
    if (last) address.searchParams.set("before", last.id.slice("log-".length));
    older.href = address.href;
  }
});

// A line that is being read stays where it is: what comes meanwhile waits on the server.
document.addEventListener("htmx:sseBeforeMessage", (event) => {
  if (event.detail.type === "counts" || !openLines().length) return;
  event.preventDefault();
  held.hidden = false;
});
document.addEventListener("htmx:sseMessage", () => {
  const rows = document.querySelector(".table--logs")?.tBodies ?? [];
  let surplus = document.querySelectorAll("#log-list [data-entry]").length - MOST;
  // Rows that say how many lines were skipped are not counted, but there are no more than lines.
  while (surplus > 0 || rows.length > 2 * MOST) {
    const oldest = rows[rows.length - 1];
    if (oldest.matches("[data-entry]")) surplus -= 1;
    oldest.remove();
  }
  redraw ??= setTimeout(() => {
    redraw = undefined;
    htmx.trigger("#log-chart", "redraw");
  }, REDRAW_MS);
  if (surplus >= 0) document.querySelector("[data-log-older]").hidden = false;
});

document.addEventListener("htmx:sseOpen", () => show("live"));
document.addEventListener("htmx:sseError", () => isLive() && show("lost"));
document.addEventListener("htmx:afterSettle", (event) => {
  if (event.detail.target?.id !== "log-list") return;
  held.hidden = true;
  if (!isLive()) show("paused");
});
// The sample comes by itself while the page is live.
document.addEventListener("logs-changed", () => isLive() || refresh());
