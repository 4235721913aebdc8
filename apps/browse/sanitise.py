"""Sanitise HTML from the Markdown of others; the last step of every rendering."""

from collections.abc import Iterator, Mapping
from functools import cache

import nh3
from django.urls import URLPattern, URLResolver, get_resolver

from apps.browse.lines import CODE_URL

TAGS = {
    *("p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6"),
    *("strong", "em", "s", "del", "code", "pre", "blockquote", "ul", "ol", "li", "a"),
    *("table", "thead", "tbody", "tr", "th", "td"),
    *("span", "div", "figure", "figcaption", "img", "button", "details", "summary"),
    *("svg", "g", "path", "rect", "text", "title"),  # of `browse.graph`
}
ATTRIBUTES = {
    "*": {"class"},
    "a": {"href", "target", "aria-label", "data-source", "data-cite", "title", "rel"},
    "img": {"src", "alt", "width", "height"},
    "ol": {"start"},
    "pre": {"tabindex", "aria-label"},
    "button": {"type", "aria-label", "title", "data-copy-code", "data-zoom"},
    "div": {"tabindex", "role", "aria-label"},
    "figure": {"data-diagram"},
    "details": {"open"},
    "svg": {"viewBox", "width", "height"},
    "path": {"d"},
    "rect": {"x", "y", "width", "height", "rx"},
    "text": {"x", "y"},
}
SCHEMES = {"http", "https", "mailto", "data"}


@cache
def pages() -> frozenset[str]:
    """The pages of this server: the only ones that a relative link may lead to.

    A page is a route of an app's `views` without parameters that is not a fragment of a page.
    """
    resolver: URLResolver = get_resolver()
    return frozenset(f"/{route}" for route in _pages(resolver))


def _pages(resolver: URLResolver) -> Iterator[str]:
    for pattern in resolver.url_patterns:
        if isinstance(pattern, URLPattern):
            route, module = str(pattern.pattern), pattern.callback.__module__
            is_static = "<" not in route and not route.startswith("ui/")
            if is_static and module.startswith("apps.") and module.endswith("views"):
                yield route
        elif not str(pattern.pattern):
            yield from _pages(pattern)


def is_safe_link(url: str) -> bool:
    """Return True if a model's text may link to `url`."""
    return url in pages() or leads_away(url)


def leads_away(url: str) -> bool:
    """Return True if `url` names a place outside of this server."""
    return url.lower().startswith(("http://", "https://", "mailto:"))


def _attribute(tag: str, name: str, value: str) -> str | None:
    if name == "href":
        return (
            value
            if is_safe_link(value) or value.startswith((f"{CODE_URL}/", f"{CODE_URL}?"))
            else None
        )
    if name == "src":
        return value if value.startswith("data:image/svg+xml;base64,") else None
    return value


_cleaner = nh3.Cleaner(
    tags=TAGS,
    attributes=ATTRIBUTES,
    attribute_filter=_attribute,
    url_schemes=SCHEMES,
    link_rel=None,
)


def sanitise(html: str) -> str:
    """Remove all tags, attributes and URLs that the renderer does not produce."""
    return _cleaner.clean(html)


def standalone(html: str, places: Mapping[str, str]) -> str:
    """Sanitise HTML for a page that stands alone: it has no scripts, so no buttons, and its links
    lead to other sites and within the page.

    places: URLs of this server, each with the place on the page that has the same.
    """

    def attribute(tag: str, name: str, value: str) -> str | None:
        if name == "href":
            return places.get(value) or (value if leads_away(value) else None)
        return None if name.startswith("data-") else _attribute(tag, name, value)

    return nh3.clean(
        html,
        tags=TAGS - {"button"},
        clean_content_tags={"button"},
        attributes={tag: names for tag, names in ATTRIBUTES.items() if tag != "button"},
        attribute_filter=attribute,
        url_schemes=SCHEMES,
        link_rel=None,
    )
