"""Template filters of the chat page: times, durations, groups of days.

static/js/clock.js shows the times and groups in the reader's zone.
"""

from datetime import datetime

from django import template
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

register = template.Library()


def local(moment: datetime) -> datetime:
    """The time in the time zone of the server."""
    return moment.astimezone()


@register.filter
def at_time(moment: datetime) -> SafeString:
    """`14:32` or, on other days, `12 Nov 14:32`, with the full time as title."""
    here = local(moment)
    today = local(timezone.now()).date()
    shown = f"{here:%H:%M}" if here.date() == today else f"{here.day} {here:%b} {here:%H:%M}"
    return _time(here, shown, "minute")


@register.filter
def when(moment: datetime) -> SafeString:
    """For lists: `14:32` today and yesterday, `Wed` within a week, then `12 Nov`."""
    here = local(moment)
    days = (local(timezone.now()).date() - here.date()).days
    if days <= 1:
        return _time(here, f"{here:%H:%M}", "list")
    shown = f"{here:%a}" if days < 7 else f"{here.day} {here:%b}"
    return _time(here, shown, "list")


def _time(here: datetime, shown: str, form: str) -> SafeString:
    return format_html(
        '<time datetime="{}" title="{}" data-clock="{}">{}</time>',
        here.isoformat(timespec="seconds"),
        f"{here:%Y-%m-%d %H:%M}",
        form,
        shown,
    )


def day_label(moment: datetime) -> str:
    """The group of a conversation in the sidebar."""
    here, now = local(moment), local(timezone.now())
    days = (now.date() - here.date()).days
    if days <= 0:
        return "Today"
    if days == 1:
        return "Yesterday"
    if days < 7:
        return "Last 7 days"
    if days < 30:
        return "Last 30 days"
    return f"{here:%B %Y}" if here.year == now.year else str(here.year)


@register.filter
def seconds(value: float) -> str:
    """`2.1 s`; two digits below a second."""
    return f"{value:.2f} s" if value < 1 else f"{value:.1f} s"
