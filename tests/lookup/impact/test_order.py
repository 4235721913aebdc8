"""The order of the tests that Impact names."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from tests.support.ingested import ingested_once, write_files

pytestmark = [pytest.mark.django_db, pytest.mark.door]

FIELDS = """\
class Field:
    def clean(self, text):
        return text


class Word(Field):
    def clean(self, text):
        return text.strip()


class Number(Field):
    def clean(self, text):
        return int(text)
"""
FORMS = """\
from forms.fields import Field


class Form:
    def __init__(self, field: Field):
        self.field = field

    def check(self, text):
        return self.field.clean(text)
"""
# All tests reach `check`, and so all methods that it may mean.
TEST = """\
from forms.fields import {field}
from forms.forms import Form


def test_{name}():
    assert Form({field}()).check("{text}")
"""
PATCH = """\
--- a/forms/fields.py
+++ b/forms/fields.py
@@ -11,3 +11,3 @@
 class Number(Field):
     def clean(self, text):
-        return int(text)
+        return int(text) + 1
"""


@pytest.fixture(scope="module")
def forms(
    django_db_setup: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    base = Path(os.path.realpath(tmp_path_factory.mktemp("order")))
    files = {"forms/__init__.py": "", "forms/fields.py": FIELDS, "forms/forms.py": FORMS}
    for name in ("all", "best", "case"):
        files[f"tests/test_{name}.py"] = TEST.format(field="Word", name=name, text="a")
    files["tests/test_zero.py"] = TEST.format(field="Number", name="zero", text="1")
    write_files(base / "forms", files)
    with ingested_once(django_db_blocker, base, {"forms": {}}):
        yield base / "forms"


def test_tests_that_name_the_class_of_a_changed_method_come_first(
    forms: Path, client: Client
) -> None:
    form = {"repository": "forms", "patch": PATCH}
    answer = client.post("/tools/impact", form, content_type="application/json").json()
    tests = [row["symbol"] for row in answer["results"] if row["kind"] == "test"]
    assert tests == ["test_zero", "test_all", "test_best", "test_case"]
