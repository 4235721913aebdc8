"""One method of a route, as OpenAPI describes it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from apps.core.errors import CodeinfoError
from apps.core.types import JSON
from apps.core.values.json_schema import TEXT
from apps.site.openapi import problems
from apps.site.openapi.problems import error_answers

PARAMETER = re.compile(r"\{(\w+)\}")
# What the parameters of paths are.
PATH_PARAMETERS = {
    "agent": "The name of an agent, which is that of its folder.",
    "conversation_id": "The id of a conversation.",
    "turn_id": "The id of an answer.",
    "key": "The id of a repository that was fetched by its URL.",
    "path": "The absolute path of a folder, percent-encoded.",
    "run_id": "The id of an ingest run.",
}


@dataclass(frozen=True)
class Operation:
    """One method of a route.

    answers: status → JSON Schema of the answer.
    errors: the errors of this operation. Their statuses and bodies are those of
        `apps.core.error_map`. The errors of all operations are added.
    query: name → JSON Schema of a parameter; all may be missing.
    headers: the same, of request headers.
    body: JSON Schema of the request; None: no body, or that of the view's serializer.
    body_required: False if a request without a body is valid.
    media: media type → JSON Schema of answers with status 200 that are not JSON.
    is_open: no credentials are needed, and there is no rate limit.
    """

    summary: str
    answers: Mapping[int, JSON]
    errors: tuple[CodeinfoError, ...] = ()
    query: Mapping[str, JSON] = field(default_factory=dict)
    headers: Mapping[str, JSON] = field(default_factory=dict)
    body: JSON | None = None
    body_required: bool = True
    media: Mapping[str, JSON] = field(default_factory=dict)
    is_open: bool = False

    def as_openapi(self, key: str, tag: str, serializer_body: JSON | None) -> JSON:
        """The operation object. `key` is "METHOD /path", `serializer_body` the request body that
        was derived from the view."""
        method, path = key.split()
        wire: JSON = {
            "operationId": operation_id(key),
            "summary": self.summary,
            "tags": [tag],
            "parameters": [*path_parameters(path), *self._other_parameters()],
            "responses": self._responses(method, path),
        }
        body = serializer_body if self.body is None else json_content(self.body)
        if body is not None:
            wire["requestBody"] = body | {"required": self.body_required}
        if self.is_open:
            wire["security"] = [{}]
        return wire

    def _other_parameters(self) -> list[JSON]:
        return [
            {"name": name, "in": place, "schema": schema}
            for place, schemas in (("query", self.query), ("header", self.headers))
            for name, schema in schemas.items()
        ]

    def _responses(self, method: str, path: str) -> JSON:
        answers: JSON = {
            str(status): {"description": DESCRIPTIONS[status]}
            | ({} if status == NO_CONTENT else json_content(schema))
            for status, schema in self.answers.items()
        }
        if self.media:
            answer = answers.setdefault("200", {"description": DESCRIPTIONS[200], "content": {}})
            answer["content"] |= {kind: {"schema": schema} for kind, schema in self.media.items()}
        errors = error_answers(method, path, self.errors, is_open=self.is_open)
        for status in answers.keys() & errors.keys():
            content = errors[status]["content"]["application/json"]
            own = answers[status]["content"]["application/json"]["schema"]
            content["schema"] = {"anyOf": [own, content["schema"]]}
        return answers | errors


NO_CONTENT = 204
DESCRIPTIONS = {
    200: "Done.",
    201: "Created.",
    202: "Accepted: the work has started.",
    NO_CONTENT: "There is nothing more.",
    **problems.DESCRIPTIONS,
}


def json_content(schema: JSON) -> JSON:
    return {"content": {"application/json": {"schema": schema}}}


def path_parameters(path: str) -> list[JSON]:
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": PATH_PARAMETERS[name],
            "schema": TEXT | {"minLength": 1},
        }
        for name in PARAMETER.findall(path)
    ]


def operation_id(key: str) -> str:
    """`POST /ingest/start` → `post_ingest_start`."""
    return "_".join(re.findall(r"\w+", key)).lower()
