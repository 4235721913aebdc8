// Toasts: the result of an action elsewhere. They go after 6 s; errors stay until dismissed.
// From the server: the header `HX-Trigger: {"toast": {"text": "…", "error": true}}`.
const LIFETIME = 6000;

function schedule(toast) {
  if (!toast.classList.contains("toast--error")) setTimeout(() => toast.remove(), LIFETIME);
}

export function toast(text, { error = false } = {}) {
  const made = document.getElementById("toast-template").content.firstElementChild.cloneNode(true);
  made.querySelector("[data-toast-text]").textContent = text;
  if (error) {
    made.classList.add("toast--error");
    made.setAttribute("role", "alert");
    made.querySelector("use").setAttribute("href", "#i-bad");
  }
  document.getElementById("toasts").append(made);
  schedule(made);
}

document.addEventListener("click", (event) => {
  if (event.target.closest("[data-toast-close]")) event.target.closest("[data-toast]").remove();
});
document.addEventListener("toast", (event) => toast(event.detail.text, event.detail));

// What htmx cannot show in place.
document.addEventListener("htmx:sendError", () => toast("The server does not answer. Nothing was changed.", { error: true }));
document.addEventListener("htmx:responseError", (event) => {
  const { status } = event.detail.xhr;
  let text = `The server answered ${status}. Reload the page, then try again.`;
  try {
    const body = JSON.parse(event.detail.xhr.responseText);
    if (body.code) text = `${body.code}: ${body.message}`;
  } catch {
    // Not ours: the status says enough.
  }
  toast(text, { error: true });
});

document.querySelectorAll("#toasts [data-toast]").forEach(schedule);
