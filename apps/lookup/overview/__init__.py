"""What a repository is: its languages, modules, entry points, most imported files, and how it is
built and tested. Facts with their lines."""

from apps.lookup.overview.as_text import percent
from apps.lookup.overview.imported import FileImports, file_imports
from apps.lookup.overview.overview import (
    Overview,
    OverviewQuery,
    files_of,
    languages_by_size,
    overview_of,
    started,
)
from apps.lookup.overview.sizes import LanguageSize, is_code

__all__ = [
    "FileImports",
    "LanguageSize",
    "Overview",
    "OverviewQuery",
    "file_imports",
    "files_of",
    "is_code",
    "languages_by_size",
    "overview_of",
    "percent",
    "started",
]
