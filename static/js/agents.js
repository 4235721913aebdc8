// The Agents page, beside what it shares with the chat: choosing an agent, and running a command.
import { running } from "./chat/stream.js";

const pick = document.querySelector("[data-agent-pick]");
const command = document.getElementById("command");
const execute = document.getElementById("execute");
const about = document.getElementById("command-about");
const UNCHOSEN = "Select a command to see its description.";

pick?.elements.a.addEventListener("change", () => pick.submit());

function offer() {
  execute.disabled = !command.value || running();
}

function describe() {
  const chosen = command.selectedOptions[0];
  about.textContent = command.value ? chosen.dataset.about || "No description provided." : UNCHOSEN;
  offer();
}

if (command) {
  command.addEventListener("change", describe);
  document.addEventListener("htmx:wsAfterMessage", offer);
  document.addEventListener("htmx:afterRequest", offer);
  describe();
}
