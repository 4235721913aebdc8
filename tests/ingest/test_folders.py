"""The folder picker and what may be ingested, at the door: by real path only."""

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from apps.core.errors import InvalidInput
from apps.ingest.folders import real_path
from tests.support.ingested import write_files


@pytest.fixture
def base(folder: Path, configure: Callable[..., None]) -> Path:
    """The only base: it has a few folders, a file, and a neighbour whose name begins alike."""
    inside = folder / "base"
    write_files(
        folder,
        {
            "base/Beta/x.py": "x = 1\n",
            "base/alpha/deep/y.py": "y = 1\n",
            "base/with space/z.py": "z = 1\n",
            "base/größe/g.py": "g = 1\n",
            "base/readme.txt": "hello\n",
            "base-secret/s.py": "s = 1\n",
        },
    )
    configure(ingest_base=(inside,))
    return inside


def dirs(client: Client, path: str | None = None) -> tuple[int, dict[str, Any]]:
    answer = client.get("/ingest/dirs", {} if path is None else {"path": path})
    return answer.status_code, answer.json()


@pytest.mark.parametrize("blank", [None, "", "  "])
def test_a_blank_path_lists_the_first_base_without_regard_to_case(
    client: Client, base: Path, blank: str | None
) -> None:
    status, body = dirs(client, blank)
    assert status == 200
    assert body == {
        "base": str(base),
        "path": str(base),
        "dirs": ["alpha", "Beta", "größe", "with space"],
        "bases": [str(base)],
    }


def test_a_folder_inside_is_listed_with_the_base_that_holds_it(client: Client, base: Path) -> None:
    status, body = dirs(client, str(base / "alpha"))
    assert (status, body["path"], body["dirs"]) == (200, str(base / "alpha"), ["deep"])
    assert body["base"] == str(base)


def test_the_nearest_of_nested_bases_is_returned(
    client: Client, base: Path, configure: Callable[..., None]
) -> None:
    configure(ingest_base=(base, base / "alpha", base))
    _, body = dirs(client, str(base / "alpha" / "deep"))
    assert body["base"] == str(base / "alpha")
    assert body["bases"] == [str(base), str(base / "alpha")]


def escapes(base: Path) -> Iterator[str]:
    yield str(base.parent)
    yield f"{base}-secret"
    yield f"{base}/../base-secret"
    yield f"{base}/alpha/../../base-secret"
    yield f"{base}/nowhere/../../base-secret"
    yield "/"
    yield "alpha"
    yield "./alpha"
    yield f"{base}\0/etc"
    yield "/proc/self/root"


@pytest.mark.fault("A path that leads outside")
def test_nothing_leads_outside_the_base(client: Client, base: Path) -> None:
    for path in escapes(base):
        status, body = dirs(client, path)
        assert (status, body["status"], body["code"]) == (400, "error", "OUTSIDE_BASE"), path


def test_a_refusal_names_the_first_of_many_bases(
    client: Client, base: Path, configure: Callable[..., None]
) -> None:
    configure(ingest_base=tuple(base / f"b{number}" for number in range(8)))
    message = dirs(client, "/etc")[1]["message"]
    assert f"{base}/b0, {base}/b1, {base}/b2, {base}/b3, {base}/b4 or 3 more" in message
    assert f"{base}/b5" not in message


@pytest.mark.fault("A path that leads outside")
def test_a_link_that_leads_outside_is_neither_offered_nor_followed(
    client: Client, base: Path
) -> None:
    (base / "escape").symlink_to(base.parent / "base-secret")
    (base / "shortcut").symlink_to(base / "alpha")
    (base / "loop").symlink_to(base / "loop")
    assert dirs(client)[1]["dirs"] == ["alpha", "Beta", "größe", "shortcut", "with space"]
    assert dirs(client, str(base / "escape"))[1]["code"] == "OUTSIDE_BASE"
    assert dirs(client, str(base / "shortcut"))[1]["path"] == str(base / "alpha")
    assert dirs(client, str(base / "loop"))[0] == 404


def test_a_folder_that_is_not_there_is_404_and_a_file_is_no_folder(
    client: Client, base: Path
) -> None:
    status, body = dirs(client, str(base / "nowhere"))
    assert (status, body["code"]) == (404, "NOT_FOUND")
    choose = f"Choose a folder beneath {base}."
    assert body["message"] == f"{base}/nowhere does not exist. {choose}"
    status, body = dirs(client, str(base / ("x" * 3000)))
    assert (status, body["code"]) == (404, "NOT_FOUND")
    assert body["message"].endswith(f"cannot be opened: File name too long. {choose}")
    status, body = dirs(client, str(base / "readme.txt"))
    assert (status, body["code"]) == (400, "NOT_DIRECTORY")
    assert body["message"] == f"{base}/readme.txt is not a folder. {choose}"


def test_a_folder_that_cannot_be_read_is_refused(
    client: Client, base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The tests may run as root, who reads everything.
    def refuse(path: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(os, "scandir", refuse)
    status, body = dirs(client, str(base / "alpha"))
    assert (status, body["code"]) == (400, "NOT_READABLE")
    assert f"choose a folder beneath {base}." in body["message"]


def test_a_name_that_is_no_utf8_is_left_out(client: Client, base: Path) -> None:
    os.mkdir(os.fsencode(base) + b"/bad\xff")
    status, body = dirs(client)
    assert status == 200
    assert not any("bad" in name for name in body["dirs"])


def test_a_refusal_names_the_folders_that_are_allowed(base: Path) -> None:
    with pytest.raises(InvalidInput, match=rf"beneath {re.escape(str(base))} can"):
        real_path(str(base.parent / "base-secret"))
