// Times in the reader's zone. The server renders them in its own: <time datetime="…" data-clock>.
//   data-clock          14:32:05
//   data-clock="ms"     14:32:05.123, and the day if it is another
//   data-clock="minute" 14:32, and the day if it is another
//   data-clock="list"   14:32 today and yesterday, Wed within a week, then 12 Nov
// The conversations are grouped by these days as well.
const DAY = 24 * 60 * 60 * 1000;
const TO_MINUTES = { hour: "2-digit", minute: "2-digit", hour12: false };
const TO_SECONDS = { ...TO_MINUTES, second: "2-digit" };

const midnight = (moment) => new Date(moment.getFullYear(), moment.getMonth(), moment.getDate());
// Rounded, because a day of a change to summer time has 23 hours.
const daysAgo = (moment) => Math.round((midnight(new Date()) - midnight(moment)) / DAY);
const dayOf = (moment) => `${moment.getDate()} ${moment.toLocaleDateString("en-GB", { month: "short" })}`;
const minutes = (moment) => moment.toLocaleTimeString("en-GB", TO_MINUTES);

const FORMATS = {
  "": (moment) => moment.toLocaleTimeString([], TO_SECONDS),
  ms: (moment) => withDay(moment, moment.toLocaleTimeString("en-GB", { ...TO_SECONDS, fractionalSecondDigits: 3 })),
  minute: (moment) => withDay(moment, minutes(moment)),
  list: listed,
};

function withDay(moment, time) {
  return daysAgo(moment) ? `${dayOf(moment)} ${time}` : time;
}

function listed(moment) {
  const days = daysAgo(moment);
  if (days <= 1) return minutes(moment);
  return days < 7 ? moment.toLocaleDateString("en-GB", { weekday: "short" }) : dayOf(moment);
}

// As `day_label` on the server.
function groupOf(moment) {
  const days = daysAgo(moment);
  if (days <= 0) return "Today";
  if (days === 1) return "Yesterday";
  if (days < 7) return "Last 7 days";
  if (days < 30) return "Last 30 days";
  const isThisYear = moment.getFullYear() === new Date().getFullYear();
  return moment.toLocaleDateString("en-GB", isThisYear ? { month: "long", year: "numeric" } : { year: "numeric" });
}

function regroup(list) {
  for (const label of list.querySelectorAll(".group-label")) label.remove();
  let last = "";
  for (const row of list.querySelectorAll(".convo-row")) {
    const group = "pinned" in row.dataset ? "Pinned" : groupOf(new Date(row.querySelector("time").dateTime));
    if (group === last) continue;
    const label = document.createElement("div");
    label.className = "group-label";
    label.textContent = last = group;
    row.before(label);
  }
}

function localise(root) {
  for (const time of root.querySelectorAll?.("time[data-clock]") ?? []) {
    const moment = new Date(time.dateTime);
    time.textContent = FORMATS[time.dataset.clock](moment);
    time.title = moment.toLocaleString();
  }
  const list = document.getElementById("convos");
  if (list && (root.contains(list) || list.contains(root))) regroup(list);
}

localise(document);
document.addEventListener("htmx:load", (event) => localise(event.target));
document.addEventListener("htmx:wsAfterMessage", () => localise(document));
