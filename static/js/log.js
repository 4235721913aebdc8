// What goes wrong in this page is told to the server's log, in small batches, and so are the tool
// events of a chat. Off without the meta
// element, which says how large an entry may be. What cannot be delivered waits, and is forgotten
// when there is too much of it.
const BATCH = 10;
const WAITS = [500, 1000, 2000, 4000];
const THROTTLE = 1000; // a page that fails in a loop is one entry a second
const MOST_WAITING = 100;

const limit = Number(document.querySelector('meta[name="log-forward"]')?.content ?? 0);
const token = JSON.parse(document.body?.getAttribute("hx-headers") ?? "{}")["X-CSRFToken"];
const id = () => Array.from(crypto.getRandomValues(new Uint8Array(8)), (byte) => byte.toString(16).padStart(2, "0")).join("");
const correlationId = id();
const waiting = [];
let tries = 0;
let timer = 0;
let last = { text: "", time: -THROTTLE };

function clientId() {
  try {
    const known = localStorage.getItem("codeinfo2.clientId") ?? id();
    localStorage.setItem("codeinfo2.clientId", known);
    return known;
  } catch {
    return ""; // a browser that keeps nothing
  }
}

// Addresses go without their query, which may hold what somebody asked.
export function log(level, message, context = {}) {
  if (!limit || !token) return;
  const now = performance.now();
  if (level !== "info" && now - last.time < THROTTLE && (last.text === message || level === "error")) return;
  if (level !== "info") last = { text: message, time: now };
  const entry = {
    level,
    message: String(message).slice(0, 2000),
    timestamp: new Date().toISOString(),
    source: "client",
    route: location.pathname,
    url: location.origin + location.pathname,
    userAgent: navigator.userAgent,
    correlationId,
    context: { ...context, clientId: clientId() },
  };
  if (new Blob([JSON.stringify(entry)]).size > limit) return;
  waiting.push(entry);
  waiting.splice(0, waiting.length - MOST_WAITING);
  timer ||= setTimeout(send, 0);
}

function batch() {
  const entries = [];
  let size = 2;
  for (const entry of waiting.slice(0, BATCH)) {
    size += new Blob([JSON.stringify(entry)]).size + 1;
    if (entries.length && size > limit) break;
    entries.push(entry);
  }
  return entries;
}

async function send() {
  timer = 0;
  if (!waiting.length || !navigator.onLine) return;
  const entries = batch();
  let status = 0;
  try {
    const headers = { "content-type": "application/json", "x-csrftoken": token };
    const body = JSON.stringify(entries);
    ({ status } = await fetch("/ui/logs/entries", { method: "POST", headers, body, keepalive: true }));
  } catch {
    // No server: tried again below.
  }
  const again = !status || status >= 500;
  if (!again) {
    const sent = new Set(entries);
    waiting.splice(0, waiting.length, ...waiting.filter((entry) => !sent.has(entry)));
  }
  tries = again ? tries + 1 : 0;
  if (waiting.length) timer ||= setTimeout(send, again ? WAITS[Math.min(tries, WAITS.length) - 1] : 0);
}

addEventListener("online", () => (timer ||= setTimeout(send, 0)));

addEventListener("error", (event) => {
  if (!event.message) return;
  const file = event.filename ? new URL(event.filename, location.href).pathname : "";
  log("error", event.message, { file, line: event.lineno, stack: event.error?.stack?.slice(0, 4000) });
});
addEventListener("unhandledrejection", ({ reason }) => {
  log("error", `Unhandled rejection: ${reason?.message ?? reason}`, { stack: reason?.stack?.slice(0, 4000) });
});
document.addEventListener("securitypolicyviolation", (event) => {
  log("warn", "Content policy violation", { directive: event.effectiveDirective, blocked: event.blockedURI.split("?")[0] });
});
document.addEventListener("htmx:responseError", (event) => {
  const { xhr, pathInfo } = event.detail;
  log("warn", "Request failed", { status: xhr.status, path: pathInfo.requestPath.split("?")[0], requestId: xhr.getResponseHeader("X-Request-Id") });
});
document.addEventListener("htmx:swapError", (event) => log("error", "Swap failed", { error: String(event.detail.error) }));
