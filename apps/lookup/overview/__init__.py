"""What a repository is: its languages, modules, entry points, most imported files, and how it is
built and tested. Facts with their lines."""

from apps.lookup.overview.overview import (
    Overview,
    OverviewQuery,
    files_of,
    overview_of,
    started,
)

__all__ = ["Overview", "OverviewQuery", "files_of", "overview_of", "started"]
