"""The last step of every rendering of a model's text."""

import nh3

from apps.retrieval.lines import SOURCE_URL

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
    "button": {"type", "aria-label", "title", "data-copy-code"},
    "figure": {"data-diagram"},
    "details": {"open"},
}


# A relative address of a model's means nothing here, but for the pages that our own advice names.
PAGES = frozenset({"/", "/ingest", "/search"})


def is_safe_link(url: str) -> bool:
    """Whether text that a model wrote may link to `url`."""
    return url in PAGES or url.lower().startswith(("http://", "https://", "mailto:"))


def _attribute(tag: str, name: str, value: str) -> str | None:
    if name == "href":
        return value if is_safe_link(value) or value.startswith(f"{SOURCE_URL}?") else None
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
    """The last step: only the tags, attributes and addresses that our own rendering makes."""
    return _cleaner.clean(html)
