"""`python -m tests.site.mongodb_offline`, with a DATABASE_URL of MongoDB: what needs no server.

Every migration is applied to a database that only writes down which indexes are asked of it, and
the queries on which locks and lists rest are put into MongoDB's language. Prints all of it, as
JSON.
"""

import json
from collections.abc import Callable
from contextlib import nullcontext
from io import StringIO
from typing import Any
from unittest.mock import MagicMock, patch

import django

django.setup()

from django.core.management import call_command  # noqa: E402
from django.db import connection  # noqa: E402
from django.db.migrations import RunPython  # noqa: E402
from django.db.migrations.autodetector import MigrationAutodetector  # noqa: E402
from django.db.migrations.loader import MigrationLoader  # noqa: E402
from django.db.migrations.state import ProjectState  # noqa: E402
from django.db.models import QuerySet  # noqa: E402
from django_mongodb_backend.query import MongoQuery  # noqa: E402

from apps.browse import names  # noqa: E402
from apps.conversations import scope, searching, sidebar  # noqa: E402
from apps.conversations.models import Conversation, Turn  # noqa: E402
from apps.conversations.queries import visible  # noqa: E402
from apps.conversations.sidebar import SidebarQuery  # noqa: E402
from apps.index.models import IngestRun, Root, SourceFile  # noqa: E402
from apps.index.types import Area  # noqa: E402


def migrated(loader: MigrationLoader) -> dict[str, Any]:
    """The documents of all indexes that the migrations make, by name."""
    made: dict[str, Any] = {}
    editor: Any = connection.schema_editor()
    collection = MagicMock()
    collection.create_indexes.side_effect = lambda models: made.update(
        {model.document["name"]: model.document for model in models}
    )
    editor.get_collection = lambda name: collection
    editor.get_database = MagicMock()
    state = ProjectState()
    # Who drops a field asks the server which indexes it has.
    editor._remove_field_index = MagicMock()
    migrations = loader.graph._generate_plan(loader.graph.leaf_nodes(), at_end=True)
    # There is no row to change.
    with (
        patch.object(RunPython, "database_forwards"),
        patch("django.db.migrations.migration.atomic", nullcontext),
    ):
        for node in migrations:
            state = loader.graph.nodes[node].apply(state, editor)
    return made


def changes(loader: MigrationLoader) -> list[str]:
    """Apps whose models have run away from their migrations."""
    found = MigrationAutodetector(loader.project_state(), ProjectState.from_apps(django.apps.apps))
    return sorted(found.changes(loader.graph))


def keys() -> dict[str, str]:
    """The kind of key of each of Django's own models that would have numbers elsewhere."""
    own = [model for model in django.apps.apps.get_models() if model._meta.pk.auto_created]
    return {model._meta.label_lower: type(model._meta.pk).__name__ for model in own}


def pipelines() -> dict[str, Any]:
    querysets: dict[str, QuerySet[Any]] = {
        "running turns": Turn.objects.filter(status=Turn.Status.RUNNING),
        "running ingests": IngestRun.objects.running(),
        "queued ingests": IngestRun.objects.filter(state="queued").order_by("queued_at"),
        "live files": SourceFile.objects.live(),
        "roots": Root.objects.published(),
        "conversations": Conversation.objects.order_by("-last_message_at", "-id")[:21],
    }
    return {name: pipeline(rows) for name, rows in querysets.items()} | evaluated()


def evaluated() -> dict[str, Any]:
    """The pipelines of what the palette, the list of conversations and the composer look up, by
    what asks; their values have no row."""
    root = Root(name="flask", path="/flask", model="m", generation=1)
    asked: dict[str, list[Any]] = {}

    def run(name: str, look_up: Callable[[], Any]) -> None:
        def no_rows(query: Any) -> Any:
            asked.setdefault(name, []).append(query.get_pipeline())
            return MagicMock(next=MagicMock(side_effect=StopIteration))  # iterates over nothing

        with (
            patch.object(MongoQuery, "get_cursor", no_rows),
            patch("apps.index.queries.published_roots", lambda: [root]),
        ):
            look_up()

    conversations = [Conversation(id="c1", title="Why?")]
    run("palette files", lambda: names.files_named("[b( src é", 5))
    run("composer", lambda: scope.suggestions("src/a(", [Area("flask")]))
    run("conversations having", lambda: list(searching.having(visible(), "why 100% (b)")[:5]))
    run("conversations about", lambda: list(searching.about(visible(), "flask")[:5]))
    run("snippets", lambda: searching.snippets(conversations, "back.off 100%"))
    run("list of conversations", lambda: sidebar.context(SidebarQuery(text="why", current="c1")))
    return asked


def pipeline(rows: QuerySet[Any]) -> Any:
    compiler: Any = rows.query.get_compiler(connection=connection)
    compiler.pre_sql_setup()
    return compiler.build_query().get_pipeline()


def main() -> None:
    call_command("check", fail_level="WARNING", stdout=StringIO())
    loader = MigrationLoader(None)
    report = {
        "database": connection.settings_dict["NAME"],
        "changes": changes(loader),
        "indexes": migrated(loader),
        "pipelines": pipelines(),
        "keys": keys(),
    }
    print(json.dumps(report, default=str))


if __name__ == "__main__":
    main()
