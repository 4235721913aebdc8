"""Files of links of hnswlib that break off are found before Chroma reads them."""

import struct
from collections.abc import Sequence
from pathlib import Path
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.index.vectors import aside
from apps.index.vectors.aside import problem_of_links, set_torn_indexes_aside

LISTS = st.lists(st.sampled_from([0, 0, 0, 4, 12, 132]), max_size=20)


def links(sizes: Sequence[int]) -> bytes:
    return b"".join(struct.pack("<I", size) + b"\xff" * size for size in sizes)


@given(sizes=LISTS, size=st.sampled_from([4, 12, 132]), after=st.integers(0, 131))
def test_a_file_breaks_off_in_the_row_whose_links_it_lacks(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], size: int, after: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "link_lists.bin"
    path.write_bytes(links(sizes))
    assert problem_of_links(path) == ""
    path.write_bytes(links([*sizes, size])[: len(links(sizes)) + 4 + min(after, size - 1)])
    assert problem_of_links(path) == f"link_lists.bin breaks off in row {len(sizes) + 1}"
    # No list has such a size.
    path.write_bytes(links([*sizes, size - 2, 0, 0]))
    assert problem_of_links(path) == f"link_lists.bin breaks off in row {len(sizes) + 1}"


def test_whole_files_are_read_again_only_when_they_have_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[Path] = []

    def noted(path: Path) -> str:
        read.append(path)
        return problem_of_links(path)

    monkeypatch.setattr(aside, "problem_of_links", noted)
    path = tmp_path / str(uuid4()) / "link_lists.bin"
    path.parent.mkdir()
    path.write_bytes(links([0, 4]))
    for _ in range(2):
        set_torn_indexes_aside(tmp_path)
    assert read == [path]
    path.write_bytes(links([0, 4, 8])[:-4])
    set_torn_indexes_aside(tmp_path)
    assert read == [path] * 2 and not path.exists()
