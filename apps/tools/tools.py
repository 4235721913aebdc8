"""The tools that a model may call to read the index. The chat and MCP offer the same tools."""

from apps.tools.context.tool import CONTEXT
from apps.tools.file_outline import FILE_OUTLINE
from apps.tools.find_callers import FIND_CALLERS
from apps.tools.find_definitions import FIND_DEFINITIONS
from apps.tools.find_imports import FIND_IMPORTS
from apps.tools.find_references import FIND_REFERENCES
from apps.tools.grep import GREP
from apps.tools.list_files import LIST_FILES
from apps.tools.list_repositories import LIST_REPOSITORIES
from apps.tools.read_file import READ_FILE
from apps.tools.related_code import RELATED_CODE
from apps.tools.tool import Tool
from apps.tools.vector_search import VECTOR_SEARCH

TOOLS: tuple[Tool, ...] = (
    *(LIST_REPOSITORIES, VECTOR_SEARCH),
    *(FIND_DEFINITIONS, FIND_REFERENCES, FILE_OUTLINE),
    *(FIND_CALLERS, FIND_IMPORTS),
    *(GREP, READ_FILE, LIST_FILES),
    *(CONTEXT, RELATED_CODE),
)
