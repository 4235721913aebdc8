"""Notes each error that says that the file is malformed (`damage`), whoever handles the error."""

from functools import cached_property
from types import TracebackType

from django.db.backends.sqlite3 import base
from django.db.utils import DatabaseErrorWrapper

from apps.core.data import damage


class DatabaseWrapper(base.DatabaseWrapper):
    @cached_property
    def wrap_database_errors(self) -> DatabaseErrorWrapper:
        return _Noting(self)


class _Noting(DatabaseErrorWrapper):
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is not None:
            damage.note(error)
        super().__exit__(kind, error, traceback)
