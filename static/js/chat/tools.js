// The tool events of an answer that this page follows go to the log: which tool, which call and its
// stage, never what was asked or found.
import { log } from "../log.js";
import { turns } from "./stream.js";

const seen = new Set();

function logNewEvents(report = true) {
  for (const step of turns().at(-1)?.querySelectorAll("[data-call]") ?? []) {
    const { call, tool, stage } = step.dataset;
    const event = `${step.id} ${stage}`;
    if (seen.has(event)) continue;
    seen.add(event);
    if (report) log("info", "chat tool event", { channel: "client-chat", callId: call, name: tool, stage });
  }
}

logNewEvents(false);
document.addEventListener("htmx:wsAfterMessage", (event) => event.target.id === "chat-live" && logNewEvents());
