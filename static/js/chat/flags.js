// The collapsed line of the Codex flags shows what is chosen, as `summary` in flags.py writes it.
document.addEventListener("change", (event) => {
  const panel = event.target.closest(".flags");
  if (!panel) return;
  const lists = [...panel.querySelectorAll("select")].map((list) => list.selectedOptions[0].text.replace(" (default)", ""));
  const boxes = [...panel.querySelectorAll("input:checked")].map((box) => box.labels[0].textContent.trim().replace("Enable ", ""));
  panel.querySelector("[data-flags-summary]").textContent = [...lists, ...boxes].join(" · ");
});
