// The page of the API: Swagger UI, which reads the description from this server.
const root = document.documentElement;
const place = document.querySelector("#api-docs");
const system = matchMedia("(prefers-color-scheme: dark)");

// Swagger UI's own dark theme, whenever the page is dark.
function follow() {
  const theme = root.dataset.theme || (system.matches ? "dark" : "light");
  root.classList.toggle("dark-mode", theme === "dark");
}

follow();
system.addEventListener("change", follow);
new MutationObserver(follow).observe(root, { attributeFilter: ["data-theme"] });

window.SwaggerUIBundle({
  domNode: place,
  url: place.dataset.schema,
  deepLinking: true,
  // No badge of a validator elsewhere.
  validatorUrl: null,
});
