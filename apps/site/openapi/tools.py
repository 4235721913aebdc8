"""The tools, from what each says of itself, and the list of repositories."""

from apps.site.openapi.operation import Operation
from apps.tools.list_repositories import LIST_REPOSITORIES
from apps.tools.tool import Tool
from apps.tools.tools import TOOLS


def operation(tool: Tool) -> Operation:
    # The routes ignore members that the schema does not name.
    body = {key: value for key, value in tool.parameters.items() if key != "additionalProperties"}
    return Operation(tool.title, {200: tool.output_schema}, tool.errors, body=body)


OPERATIONS = {
    **{f"POST /tools/{tool.route}": operation(tool) for tool in TOOLS if tool.route},
    "GET /tools/ingested-repos": Operation(
        "The repositories that can be searched", {200: LIST_REPOSITORIES.output_schema}
    ),
}
