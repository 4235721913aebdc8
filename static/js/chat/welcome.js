// The empty chat: the list of repositories gives way to the progress of the one that was chosen, and
// that to questions about it. The focus follows.
const run = () => document.getElementById("h-chat-run");
let pressed = false; // in this page, so that nobody's focus moves by itself

document.addEventListener("htmx:afterRequest", ({ target, detail }) => {
  if (!target.matches(".nearby__list") || !detail.successful) return;
  pressed = true;
  run()?.focus();
});

for (const name of ["htmx:afterSettle", "htmx:wsAfterMessage"]) {
  document.addEventListener(name, () => {
    const about = document.querySelector("[data-asks-about]")?.dataset.asksAbout;
    if (about) document.getElementById("message").placeholder = `Ask about ${about}`;
    const lost = !document.activeElement || document.activeElement === document.body;
    if (pressed && lost) run()?.focus();
  });
}
