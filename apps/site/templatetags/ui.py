"""Template tags and filters for all pages: icons, ages, durations."""

from datetime import datetime, timedelta

from django import template
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from apps.browse import lines
from apps.core import principal
from apps.core.security.menu import PAGES, Page
from apps.index import paths
from apps.index.models import Root
from apps.ingest.watching import states
from apps.retrieval.repositories import repo_id

register = template.Library()


@register.simple_tag
def icon(name: str, extra: str = "") -> SafeString:
    """Return an icon of `_icons.html`. It is hidden from screen readers: put it beside a word, or
    in an element with an aria-label."""
    classes = f"i {extra}".strip()
    return format_html(
        '<svg class="{}" aria-hidden="true"><use href="#i-{}"/></svg>', classes, name
    )


@register.simple_tag
def staff() -> bool:
    """Whether the current user is staff."""
    return principal.current().is_staff


@register.simple_tag
def pages() -> list[Page]:
    """The pages of the menu that the current user may open."""
    return [page for page in PAGES if principal.current().is_staff or not page.for_staff]


@register.simple_tag
def code_url(root: Root) -> str:
    """The address of a repository's code."""
    return lines.code_url(repo_id(root))


@register.simple_tag
def changed(root: Root) -> str:
    """What of a repository has changed on disk since its ingest; "" if nothing is known to have."""
    folder = states.known(root)
    return folder.behind if folder else ""


# Of a folder: its path as the user's machine names it.
register.filter(paths.host_path)


@register.filter
def sentence(text: str) -> str:
    """Return a text with a full stop, unless it ends a sentence. Servers' messages often do not."""
    return text if text.rstrip().endswith((".", "!", "?", "…")) else f"{text.rstrip()}."


@register.filter
def ago(moment: datetime | None) -> SafeString | str:
    """Return "2 h ago", with the full time as title; a date after a week; "never" for None."""
    if moment is None:
        return "never"
    iso = moment.astimezone(timezone.get_default_timezone()).isoformat(timespec="seconds")
    return format_html(
        '<time datetime="{}" title="{}">{}</time>',
        iso,
        f"{moment:%Y-%m-%d %H:%M} UTC",
        _age(moment),
    )


def _age(moment: datetime) -> str:
    seconds = max(0, int((timezone.now() - moment).total_seconds()))
    if seconds >= 7 * 86_400:
        return f"{moment.day} {moment:%b %Y}"
    for unit, length in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds // length} {unit} ago"
    return "just now"


@register.filter
def clock(milliseconds: int | None) -> str:
    """Return milliseconds as hh:mm:ss; "" for None."""
    if milliseconds is None:
        return ""
    seconds = max(0, round(milliseconds / 1000))
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"


@register.filter
def duration(span: timedelta | float | None) -> str:
    """Return "3 h 12 min", "4 min", "12 s" or "0.9 s"; "" for None."""
    if span is None:
        return ""
    seconds = span.total_seconds() if isinstance(span, timedelta) else float(span)
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = int(seconds // 60)
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"


@register.filter
def size(count: int | None) -> str:
    """Return bytes in decimal units: 88 B, 1.4 kB, 21 MB."""
    value = float(count or 0)
    if value < 1000:
        return f"{value:.0f} B"
    for unit in ("kB", "MB", "GB"):
        value /= 1000
        if value < 1000 or unit == "GB":
            break
    return f"{value:.1f} {unit}" if value < 10 else f"{value:.0f} {unit}"


@register.simple_tag(takes_context=True)
def current(context: template.Context, prefix: str) -> SafeString | str:
    """Return the attribute aria-current for the navigation entry of this page."""
    path = context["request"].path if "request" in context else ""
    here = path == prefix if prefix == "/" else path.startswith(prefix)
    return format_html(' aria-current="{}"', "page") if here else ""
