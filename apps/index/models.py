"""Models of the index: roots, their files, and the runs that wrote them.

A generation number publishes a run (as in multiversion concurrency control). A SourceFile is live
if `since <= root.generation` and `until` is null or greater. A run writes rows for
generation + 1; one conditional UPDATE of Root.generation makes all of them live and the replaced
ones dead. Before that UPDATE, and after a crash, nothing has changed for readers.
"""

import uuid
from collections.abc import Iterable, Mapping
from operator import itemgetter
from typing import Any

from django.db import connection, models, transaction
from django.db.models import Case, Count, F, Q, Sum, When
from django.db.models.functions import Coalesce
from django.db.models.signals import pre_delete
from django.dispatch import receiver

from apps.core.values.ids import uuid7
from apps.index.types import RUNNING_STATES, TERMINAL_STATES

LONGEST_REASON = 255


def _default_to_own_id(row: models.Model, field: str) -> None:
    if row.__dict__.get(field, "deferred") is None:
        setattr(row, field, row.pk)


class RootQuerySet(models.QuerySet["Root"]):
    def published(self) -> "RootQuerySet":
        """Roots that can be searched: their first run has published."""
        return self.filter(generation__gt=0)

    def published_by(self, run_id: uuid.UUID) -> "RootQuerySet":
        """Roots of which this run has published all, as the last one."""
        return self.filter(last_run_id=run_id, awaited_files=None)


class Root(models.Model):
    """An ingested folder, identified by its real path.

    At generation 0 its first run has not published yet. While `awaited_files` is set, it has
    published a part of the files (`runs.first_slices`). `last_run_id` is the run that published
    last. `last_state` and `last_error` belong to the latest run, which may have failed.

    `store` is the id of its Chroma collection. Roots with equal files (worktrees, forks, copies)
    share a store and parts; by default a root has its own store, with the root's id.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    store = models.UUIDField(editable=False, db_index=True)
    path = models.CharField(max_length=1024, unique=True)
    name = models.CharField(max_length=255, unique=True)
    description = models.TextField(blank=True, default="")
    model = models.CharField(max_length=255)
    # Files are discovered by a walk, even if the folder is a git repository.
    plain_folder = models.BooleanField(default=False)
    # Ingested by itself when the folder changes (CODEINFO_WATCH). None: if nothing is sent to
    # another machine for that.
    watch = models.BooleanField(null=True, blank=True)
    # Files that have not changed since then are as they are published.
    looked_at = models.DateTimeField(null=True, blank=True, editable=False)
    # What git had checked out when the folder was last looked at; "" without git. `dirty`: files
    # differed from the commit; None if that is not known.
    commit = models.CharField(max_length=64, blank=True, default="", editable=False)
    branch = models.CharField(max_length=255, blank=True, default="", editable=False)
    dirty = models.BooleanField(null=True, editable=False)
    # Version of the chunker that made the chunks (`runs.delta`); another version makes all of them
    # again.
    chunker_version = models.CharField(max_length=64, blank=True, default="", editable=False)
    generation = models.PositiveIntegerField(default=0)
    # The files of its index, and what is live in them (`mapped.lists`). Merging them raises the
    # revision, a generation begins at 0.
    parts = models.JSONField(default=list, blank=True, editable=False)
    revision = models.PositiveIntegerField(default=0, editable=False)
    files = models.PositiveIntegerField(default=0)
    chunks = models.PositiveIntegerField(default=0)
    embedded = models.PositiveIntegerField(default=0)
    skipped = models.PositiveIntegerField(default=0)
    # How many files its first run has found, until all of them are published; None: all are.
    awaited_files = models.PositiveIntegerField(null=True, editable=False)
    last_run_id = models.UUIDField(null=True, blank=True)
    # A run that was ended while it published, as its process was taken for dead: should it go on,
    # it publishes nothing more.
    fenced_run_id = models.UUIDField(null=True, editable=False)
    last_state = models.CharField(max_length=32, blank=True, default="")
    last_error = models.TextField(blank=True, default="")
    # A sentence on published data that the index lacks; empty if none is known to be lost.
    damage = models.TextField(blank=True, default="", editable=False)
    last_ingest_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = RootQuerySet.as_manager()

    class Meta:
        ordering = ["-last_ingest_at", "-created_at"]

    def __init__(self, *args: Any, **fields: Any) -> None:
        super().__init__(*args, **fields)
        _default_to_own_id(self, "store")

    def __str__(self) -> str:
        return self.name


class IngestRunQuerySet(models.QuerySet["IngestRun"]):
    def live(self) -> "IngestRunQuerySet":
        """Runs that are queued or in progress."""
        return self.exclude(state__in=TERMINAL_STATES)

    def running(self) -> "IngestRunQuerySet":
        """Runs in progress."""
        return self.filter(state__in=RUNNING_STATES)

    def requested(self) -> "IngestRunQuerySet":
        """Runs that somebody has started."""
        return self.filter(automatic=False)


class IngestRun(models.Model):
    """One pass over a folder: its queue entry, its progress and its result.

    `slot` is unique and set until the run has ended. Of two concurrent requests that both find the
    index idle, only one can insert its row, on every database.
    """

    class Operation(models.TextChoices):
        START = "start"
        REEMBED = "reembed"
        REMOVE = "remove"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    root = models.ForeignKey(Root, null=True, blank=True, on_delete=models.SET_NULL)
    operation = models.CharField(max_length=16, choices=Operation.choices)
    path = models.CharField(max_length=1024)
    name = models.CharField(max_length=255)
    description = models.TextField(blank=True, default="")
    model = models.CharField(max_length=255)
    dry_run = models.BooleanField(default=False)
    plain_folder = models.BooleanField(default=False)
    # Started as the folder had changed, by nobody.
    automatic = models.BooleanField(default=False)
    # What is looked at, relative to the folder; a path that ends with a slash is all below. None:
    # everything.
    paths = models.JSONField(null=True, blank=True, editable=False)
    # Publish even if most files have disappeared.
    force = models.BooleanField(default=False)
    slot = models.CharField(max_length=64, null=True, unique=True, editable=False)  # noqa: DJ001

    state = models.CharField(max_length=32, default="queued", db_index=True)
    message = models.TextField(blank=True, default="Queued")
    last_error = models.TextField(blank=True, default="")
    error_code = models.CharField(max_length=64, blank=True, default="")
    files = models.PositiveIntegerField(default=0)
    chunks = models.PositiveIntegerField(default=0)
    embedded = models.PositiveIntegerField(default=0)
    skipped = models.PositiveIntegerField(default=0)
    # Number of files that stay as an earlier run published them.
    unchanged = models.PositiveIntegerField(default=0)
    # Numbers and first names of the files that git does not track (`ingest.types.LeftOut`).
    left_out = models.JSONField(default=dict, blank=True, editable=False)
    current_file = models.TextField(blank=True, default="")
    file_index = models.PositiveIntegerField(null=True, blank=True)
    file_total = models.PositiveIntegerField(null=True, blank=True)
    eta_ms = models.BigIntegerField(null=True, blank=True)

    # Id of the HTTP request that queued the run, for the log.
    request_id = models.CharField(max_length=64, blank=True, default="", editable=False)
    cancel_requested = models.BooleanField(default=False)
    # Set by the run before it publishes: it can no longer be cancelled.
    publishing = models.BooleanField(default=False, editable=False)
    owner = models.CharField(max_length=64, blank=True, default="")
    heartbeat_at = models.DateTimeField(null=True, blank=True)
    queued_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    objects = IngestRunQuerySet.as_manager()

    class Meta:
        ordering = ["-queued_at"]

    def __str__(self) -> str:
        return f"{self.operation} {self.name} ({self.state})"


def _is_live_at(generation: F | int) -> Q:
    """The one rule of liveness. `dead` is its complement for rows that have a root."""
    return Q(since__lte=generation) & (Q(until__isnull=True) | Q(until__gt=generation))


class SourceFileQuerySet(models.QuerySet["SourceFile"]):
    def insert(self, rows: Iterable[Mapping[str, object]]) -> None:
        """Save new rows, all or none where the database has transactions. A row is column → value;
        a column that it lacks has its default.

        In SQLite this takes a quarter of the time of `bulk_create`, which asks each field. Ids are
        in order of time, as random ones are all over an index.
        """
        fields = self.model._meta.concrete_fields
        defaults = {field.attname: field.get_default() for field in fields}
        values_of = itemgetter(*defaults)
        values = [
            values_of({**defaults, "id": (key := uuid7()), "document": key, **row}) for row in rows
        ]
        if connection.vendor != "sqlite":
            self.bulk_create([self.model(*row) for row in values])
            return
        columns = ", ".join(f'"{field.column}"' for field in fields)
        places = ", ".join(["%s"] * len(fields))
        statement = f'INSERT INTO "{self.model._meta.db_table}" ({columns}) VALUES ({places})'
        stored = [[v.hex if isinstance(v, uuid.UUID) else v for v in row] for row in values]
        with transaction.atomic(savepoint=False), connection.cursor() as cursor:
            cursor.executemany(statement, stored)

    def live(self) -> "SourceFileQuerySet":
        """Rows that are published now, skipped files included."""
        return self.filter(_is_live_at(F("root__generation")))

    def live_at(self, generation: int) -> "SourceFileQuerySet":
        """Rows of one root that are live at this generation, which may be an earlier one."""
        return self.filter(_is_live_at(generation))

    def live_in(self, roots: Iterable[Root]) -> "SourceFileQuerySet":
        """Rows that are live at the generations that these objects have. No join, which MongoDB
        would make for each row."""
        by_generation: dict[int, list[uuid.UUID]] = {}
        for root in roots:
            by_generation.setdefault(root.generation, []).append(root.id)
        live = Q(pk__in=[])
        for generation, ids in by_generation.items():
            live |= Q(root__in=ids) & _is_live_at(generation)
        return self.filter(live)

    def dead(self) -> "SourceFileQuerySet":
        """Rows of runs that have not published, and rows that a later run replaced."""
        return self.filter(Q(since__gt=F("root__generation")) | Q(until__lte=F("root__generation")))

    def ingested(self) -> "SourceFileQuerySet":
        """Files that were not skipped."""
        return self.filter(skip_reason="")

    def skipped(self) -> "SourceFileQuerySet":
        """Files that a run left out."""
        return self.exclude(skip_reason="")

    def with_problem(self) -> "SourceFileQuerySet":
        """Ingested files whose chunks are incomplete or out of date."""
        return self.filter(skip_reason="").exclude(problem="")

    def without_vectors(self) -> "SourceFileQuerySet":
        """Ingested files of which some or all chunks have no vector."""
        return self.filter(embedded__lt=F("chunks"))

    def listed(self) -> "SourceFileQuerySet":
        """Files that are skipped or have a problem, annotated with `reason`."""
        reason = Case(When(skip_reason="", then=F("problem")), default=F("skip_reason"))
        return self.annotate(reason=reason).exclude(reason="")

    def totals(self) -> dict[str, int]:
        """The counts of a root with these rows, by the names of its fields."""
        return self.aggregate(
            files=Count("id", filter=Q(skip_reason="")),
            skipped=Count("id", filter=~Q(skip_reason="")),
            chunks=Coalesce(Sum("chunks"), 0),
            embedded=Coalesce(Sum("embedded"), 0),
        )


class SourceFile(models.Model):
    """A file of a root as one run read it, or the reason why the run skipped it.

    The row stays live while later runs find the file unchanged. `embedded` of its `chunks` have a
    vector. Rows of a dry run have no root; they list what would be skipped, and are never live.
    Nor are rows of a root that was removed: they name it until a sweep deletes them.

    `document` is the id under which the root's store has its chunks (`index.chunk_ids`). Rows of
    other roots in the same store have the same one if path and content are equal. By default it is
    the row's id.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    document = models.UUIDField(editable=False)
    # Its rows stay when a root is deleted, as there may be 100,000: a sweep deletes them. Indexes
    # begin with it.
    root = models.ForeignKey(
        Root,
        null=True,
        blank=True,
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        db_index=False,
    )
    run = models.ForeignKey(IngestRun, on_delete=models.CASCADE)
    path = models.TextField()
    language = models.CharField(max_length=32, blank=True, default="")
    sha256 = models.CharField(max_length=64, blank=True, default="")
    # "": UTF-8, or that of the byte order mark. Other files have it in their `sha256`, too.
    encoding = models.CharField(max_length=32, blank=True, default="")
    size = models.BigIntegerField(default=0)
    mtime_ns = models.BigIntegerField(default=0)
    ctime_ns = models.BigIntegerField(default=0)
    chunks = models.PositiveIntegerField(default=0)
    embedded = models.PositiveIntegerField(default=0)
    # Where its chunks are in its text (`index.spans`). The text is found by `sha256`.
    spans = models.BinaryField(default=b"", blank=True)
    since = models.PositiveIntegerField()
    until = models.PositiveIntegerField(null=True, blank=True)
    skip_reason = models.CharField(max_length=LONGEST_REASON, blank=True, default="")
    # Why its chunks are incomplete or out of date: the file could not be parsed or read.
    problem = models.CharField(max_length=LONGEST_REASON, blank=True, default="")

    objects = SourceFileQuerySet.as_manager()

    class Meta:
        ordering = ["path"]
        indexes = [
            models.Index(fields=["root", "since"]),
            models.Index(fields=["root", "until"]),
            models.Index(fields=["sha256"]),
            models.Index(fields=["document"]),
        ]

    def __init__(self, *args: Any, **fields: Any) -> None:
        super().__init__(*args, **fields)
        _default_to_own_id(self, "document")

    def __str__(self) -> str:
        return self.path


class IndexLock(models.Model):
    """The embedder that all roots share, so that their distances compare. One row, or none."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    model = models.CharField(max_length=255)
    dimension = models.PositiveIntegerField()
    # Another one after each use, so that `lock.release` deletes no lock that was used meanwhile.
    token = models.UUIDField(default=uuid.uuid4, editable=False)
    space = models.CharField(max_length=16, default="l2")
    locked_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.model


class Installation(models.Model):
    """The installation that this database belongs to. One row, created at the first start.

    Every collection and part records its `uid`, so that codeinfo deletes nothing that another
    installation has written.
    """

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    uid = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return str(self.uid)


class RemovedRoot(models.Model):
    """A tombstone: this database had the root, so its parts may be deleted.

    A sweep deletes nothing of a root that is neither here nor in Root. The rows stay, as a run of
    another process may still write for a root before it notices the removal.
    """

    root_id = models.UUIDField(primary_key=True)
    path = models.CharField(max_length=1024)
    name = models.CharField(max_length=255)
    removed_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.name


class Clone(models.Model):
    """A repository that was fetched by its URL. It is there before the root at `path`."""

    id = models.UUIDField(primary_key=True, editable=False)
    path = models.CharField(max_length=1024, unique=True)
    # `URL` or `URL@ref`, without credentials.
    url = models.CharField(max_length=1024)
    # When the last fetch began.
    tried_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.url


@receiver(pre_delete, sender=Root)
def record_removal(instance: Root, **signal: object) -> None:
    """Write the tombstone of a root in the transaction that deletes it."""
    facts = {"path": instance.path, "name": instance.name}
    RemovedRoot.objects.update_or_create(root_id=instance.id, defaults=facts)
