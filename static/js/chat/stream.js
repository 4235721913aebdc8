// The socket's fragments: what the page has is told on connect, what the reader opened stays open,
// and the transcript sticks to its end only while the reader is there.
import { isPressed, released } from "../press.js";

const NEAR = 64;
const transcript = document.getElementById("transcript");
const jump = document.querySelector("[data-jump]");
let stuck = true;
let top = transcript.scrollTop; // where it was last seen or set
let height = transcript.scrollHeight;
let spoke = { id: "", at: 0 }; // the turn whose answer grows, and when its first words came
const BURST = 1000; // milliseconds

const atEnd = () => transcript.scrollHeight - transcript.scrollTop - transcript.clientHeight <= NEAR;
export const turns = () => [...document.querySelectorAll("#turns > .turn")];
export const running = () => turns().some((turn) => turn.dataset.status === "running");

async function moveToEnd() {
  if (isPressed()) await released();
  if (!stuck) return;
  transcript.scrollTop = transcript.scrollHeight;
  top = transcript.scrollTop;
}

export function toEnd() {
  stuck = true;
  moveToEnd();
  jump.hidden = true;
}

// Over what is pressed it would take the click.
async function offerJump() {
  if (isPressed()) await released();
  jump.hidden = stuck || atEnd() || !turns().length;
}

// Any place but the one set here is the reader's choice. Asked before each change of the content,
// because scroll events come late: after one that would take the reader back to the end.
function look() {
  if (transcript.scrollTop !== top) stuck = atEnd();
  top = transcript.scrollTop;
}

document.addEventListener("htmx:wsOpen", (event) => {
  if (event.target.id !== "chat-live") return;
  const have = Object.fromEntries(turns().map((turn) => [turn.dataset.turn, turn.dataset.status]));
  const list = document.getElementById("convos").dataset.mark;
  event.detail.socketWrapper.send(JSON.stringify({ turns: have, list }), event.target);
});

// <details> that the reader opened or closed keep their state in the element that replaces them.
document.addEventListener("htmx:oobBeforeSwap", (event) => {
  const { target, fragment } = event.detail;
  const old = [...target.querySelectorAll("details[id]"), ...(target.matches("details[id]") ? [target] : [])];
  for (const details of old) {
    const next = fragment.querySelector(`#${CSS.escape(details.id)}`);
    if (next) next.open = details.open;
  }
});

// Whether an answer has come in one go, and not as a stream that has halted for a moment.
function burst(grown) {
  const last = turns().at(-1);
  if (spoke.id !== last.id && last.querySelector(".prose")) spoke = { id: last.id, at: performance.now() };
  return grown > transcript.clientHeight && !(spoke.id === last.id && performance.now() - spoke.at > BURST);
}

function follow() {
  if (!turns().length) return;
  for (const turn of document.querySelectorAll(".thought .open-text")) turn.parentElement.scrollTop = turn.parentElement.scrollHeight;
  const grown = transcript.scrollHeight - height;
  height = transcript.scrollHeight;
  const atOnce = burst(grown);
  if (stuck && atOnce && !isPressed()) {
    // More than can be read: the reader begins at its beginning.
    turns().at(-1).scrollIntoView({ block: "start" });
    top = transcript.scrollTop;
    stuck = atEnd();
  }
  if (stuck) moveToEnd();
  offerJump();
}

document.addEventListener("htmx:wsBeforeMessage", (event) => event.target.id === "chat-live" && look());
document.addEventListener("htmx:wsAfterMessage", (event) => event.target.id === "chat-live" && follow());
transcript.addEventListener("scroll", () => {
  look();
  offerJump();
});
jump.addEventListener("click", () => {
  spoke.at = -Infinity; // whatever comes now, the reader is at the end
  toEnd();
  document.getElementById("message").focus();
});
// Opening details is the reader's move: their place wins over the end.
transcript.addEventListener("toggle", () => (stuck = atEnd()), true);
new ResizeObserver(() => {
  look();
  if (stuck && turns().length) toEnd();
}).observe(transcript);
if (turns().length) toEnd();
