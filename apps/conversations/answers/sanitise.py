"""Sanitise HTML from a model's text; the last step of every rendering."""

import nh3

from apps.retrieval.lines import CODE_URL

TAGS = {
    *(
        "p",
        "br",
        "hr",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "strong",
        "em",
        "s",
        "del",
        "code",
        "pre",
    ),
    *(
        "blockquote",
        "ul",
        "ol",
        "li",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "a",
        "span",
        "div",
    ),
    *("span", "div", "figure", "figcaption", "img", "button", "details", "summary"),
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
}


# Relative links are allowed only to pages that messages of this server name.
PAGES = frozenset({"/", "/ingest", "/search"})


def is_safe_link(url: str) -> bool:
    """Return True if a model's text may link to `url`."""
    return url in PAGES or url.lower().startswith(("http://", "https://", "mailto:"))


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
    url_schemes={"http", "https", "mailto", "data"},
    link_rel=None,
)


def sanitise(html: str) -> str:
    """Remove all tags, attributes and URLs that the renderer does not produce."""
    return _cleaner.clean(html)
