"""The tools that a model may call to read the index. The chat and MCP offer the same tools."""

from apps.tools.check_citations import CHECK_CITATIONS
from apps.tools.context.tool import CONTEXT
from apps.tools.file_outline import FILE_OUTLINE
from apps.tools.find_callers import FIND_CALLERS
from apps.tools.find_definitions import FIND_DEFINITIONS
from apps.tools.find_imports import FIND_IMPORTS
from apps.tools.find_references import FIND_REFERENCES
from apps.tools.grep import GREP
from apps.tools.history import HISTORY
from apps.tools.impact import IMPACT
from apps.tools.list_files import LIST_FILES
from apps.tools.list_repositories import LIST_REPOSITORIES
from apps.tools.overview import OVERVIEW
from apps.tools.read_file import READ_FILE
from apps.tools.related_code import RELATED_CODE
from apps.tools.standing import standing
from apps.tools.tool import Tool
from apps.tools.vector_search import VECTOR_SEARCH

# In the order in which models, clients and documents list them.
TOOLS: tuple[Tool, ...] = (
    *map(
        standing,
        (
            CONTEXT,
            OVERVIEW,
            VECTOR_SEARCH,
            FIND_DEFINITIONS,
            FIND_REFERENCES,
            FIND_CALLERS,
            FIND_IMPORTS,
            FILE_OUTLINE,
            GREP,
            READ_FILE,
            LIST_FILES,
            RELATED_CODE,
            HISTORY,
            IMPACT,
            CHECK_CITATIONS,
        ),
    ),
    LIST_REPOSITORIES,
)
TOOLS_BY_NAME = {tool.name: tool for tool in TOOLS}
