"""What a repository is: its languages, modules, entry points, most imported files, and how it is
built and tested. Facts with their lines; the words are those of `apps/tools/overview.py`."""

from apps.lookup.overview.overview import Overview, OverviewQuery, overview_of

__all__ = ["Overview", "OverviewQuery", "overview_of"]
