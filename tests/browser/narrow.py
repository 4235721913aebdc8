"""Pages that are too narrow for what they show."""

from collections.abc import Iterable

from playwright.sync_api import Page

NARROW = (320, 640)


def sideways(page: Page) -> int:
    """Pixels that the page can be scrolled to the side."""
    return int(page.evaluate("document.documentElement.scrollWidth - innerWidth")) if page else 0


def sideways_at(page: Page, widths: Iterable[int]) -> dict[int, int]:
    """The widths at which the open page can be scrolled to the side, and how far."""
    found = {}
    for width in widths:
        page.set_viewport_size({"width": width, "height": 900})
        found[width] = sideways(page)
    return {width: pixels for width, pixels in found.items() if pixels}


# Pairs of visible controls of which neither contains the other, and whose boxes share more than a
# pixel in both directions.
OVERLAPS = """() => {
  const all = [...document.querySelectorAll("a[href], button, input, select, textarea, summary")]
    .filter((e) => e.checkVisibility({ opacityProperty: true, visibilityProperty: true })
      && !e.closest("dialog:not([open]), .sidebar, .sr-only, .skip, [inert]"));
  const shown = all.map((e) => {
    let { left, right, top, bottom } = e.getBoundingClientRect();
    for (let p = e.parentElement; p; p = p.parentElement) {
      if (getComputedStyle(p).overflow === "visible") continue;
      const box = p.getBoundingClientRect();
      [left, right] = [Math.max(left, box.left), Math.min(right, box.right)];
      [top, bottom] = [Math.max(top, box.top), Math.min(bottom, box.bottom)];
    }
    return { e, left, right, top, bottom };
  }).filter((s) => s.right - s.left > 1 && s.bottom - s.top > 1);
  const named = (e) => e.outerHTML.slice(0, 120);
  const found = [];
  for (const [i, a] of shown.entries()) for (const b of shown.slice(i + 1)) {
    if (a.e.contains(b.e) || b.e.contains(a.e)) continue;
    if (a.e.labels && [...a.e.labels].some((l) => l.contains(b.e))) continue;
    const x = Math.min(a.right, b.right) - Math.max(a.left, b.left);
    const y = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    if (x > 1 && y > 1) found.push(`${named(a.e)} over ${named(b.e)}`);
  }
  return found;
}"""
