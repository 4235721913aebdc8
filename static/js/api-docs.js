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

// A landmark around what stands above the routes, with the heading that those of the routes need
// above them; a name for lists of examples; and no links within the buttons that open a route.
const accessible = {
  wrapComponents: {
    InfoContainer: (Original, { React: { createElement } }) => (props) =>
      createElement("section", { "aria-label": "About" },
        createElement(Original, props),
        createElement("h2", { className: "sr-only" }, "Routes")),
    ExamplesSelect: (Original, { React: { createElement } }) => (props) =>
      createElement("label", null,
        createElement("span", { className: "sr-only" }, "Example"),
        createElement(Original, props)),
    DeepLink: (Original, { React: { createElement } }) => ({ text }) =>
      createElement("span", null, text),
  },
};

window.SwaggerUIBundle({
  plugins: [accessible],
  domNode: place,
  url: place.dataset.schema,
  deepLinking: true,
  // No badge of a validator elsewhere.
  validatorUrl: null,
});
