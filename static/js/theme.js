// Theme: system → light → dark. The cookie is read by the server, so the next first paint is right.
const ORDER = ["", "light", "dark"];
const ICONS = { "": "auto", light: "sun", dark: "moon" };
const root = document.documentElement;

function show(theme) {
  if (theme) root.dataset.theme = theme;
  else delete root.dataset.theme;
  const label = `Theme: ${theme || "system"}`;
  for (const button of document.querySelectorAll("[data-theme-toggle][aria-label]")) {
    button.setAttribute("aria-label", label);
    button.title = label;
    button.querySelector("use").setAttribute("href", `#i-${ICONS[theme]}`);
  }
}

function nextTheme() {
  const theme = ORDER[(ORDER.indexOf(root.dataset.theme ?? "") + 1) % ORDER.length];
  document.cookie = `theme=${theme}; path=/; max-age=${theme ? 31536000 : 0}; samesite=lax`;
  show(theme);
}

document.addEventListener("click", (event) => {
  if (event.target.closest("[data-theme-toggle]")) nextTheme();
});
