// The socket's fragments: what the page has is told on connect, what the reader opened stays open,
// and the transcript sticks to its end only while the reader is there.
const NEAR = 64;
const transcript = document.getElementById("transcript");
const jump = document.querySelector("[data-jump]");
let stuck = true;
let height = transcript.scrollHeight;

const atEnd = () => transcript.scrollHeight - transcript.scrollTop - transcript.clientHeight <= NEAR;
export const turns = () => [...document.querySelectorAll("#turns > .turn")];
export const running = () => turns().some((turn) => turn.dataset.status === "running");

export function toEnd() {
  stuck = true;
  transcript.scrollTop = transcript.scrollHeight;
  jump.hidden = true;
}

document.addEventListener("htmx:wsOpen", (event) => {
  if (event.target.id !== "chat-live") return;
  const have = Object.fromEntries(turns().map((turn) => [turn.dataset.turn, turn.dataset.status]));
  event.detail.socketWrapper.send(JSON.stringify({ turns: have }), event.target);
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

function follow() {
  if (!turns().length) return;
  for (const turn of document.querySelectorAll(".thought .open-text")) turn.parentElement.scrollTop = turn.parentElement.scrollHeight;
  const grown = transcript.scrollHeight - height;
  height = transcript.scrollHeight;
  if (stuck && grown > transcript.clientHeight) {
    // More than can be read came at once: the reader begins at its beginning.
    turns().at(-1).scrollIntoView({ block: "start" });
    stuck = atEnd();
  }
  if (stuck) transcript.scrollTop = transcript.scrollHeight;
  jump.hidden = stuck || atEnd();
}

document.addEventListener("htmx:wsAfterMessage", (event) => event.target.id === "chat-live" && follow());
transcript.addEventListener("scroll", () => {
  stuck = atEnd();
  if (stuck) jump.hidden = true;
});
jump.addEventListener("click", () => {
  toEnd();
  document.getElementById("message").focus();
});
// Opening details is the reader's move: their place wins over the end.
transcript.addEventListener("toggle", () => (stuck = atEnd()), true);
new ResizeObserver(() => stuck && turns().length && toEnd()).observe(transcript);
if (turns().length) toEnd();
