// What is pressed gets its click only if it is still under the pointer when that is released: what
// moves or replaces content by itself waits for it.
let release = null; // ends the press of a pointer
let pressed = Promise.resolve(); // settles when no pointer is down

export const isPressed = () => Boolean(release);
export const released = () => pressed;

document.addEventListener("pointerdown", (event) => {
  // A press on a scrollbar has no end in every browser; it is none of a control or a line.
  if (!release && !event.button && event.target.closest("a, button, summary, .line")) pressed = new Promise((resolve) => (release = resolve));
});
for (const name of ["pointerup", "pointercancel"]) {
  document.addEventListener(name, () => {
    // The click follows in the same task.
    if (release) setTimeout(release);
    release = null;
  });
}
