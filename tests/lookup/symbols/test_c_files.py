"""Headers of C++, CUDA, and functions that macros of C name: definitions and callers."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from apps.lookup.symbols import callers
from tests.lookup.symbols.conftest import Post
from tests.support.ingested import ingested_once

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.door,
    pytest.mark.usefixtures("repositories", "patience"),
]

AUDIO: dict[str, str | bytes] = {
    "x.h": (
        "#pragma once\nnamespace audio {\nclass Sampler final {\n public:\n"
        "  int addListener(const Rect& area);\n"
        "  template <typename T> T gainOf(T v) const { return v * 2; }\n"
        "};\n}  // namespace audio\n"
    ),
    "plain.h": "/* class of its own */\nint lowest(int a);\n",
    "macro.c": (
        "#define NAMED(x) mod_##x\n\nstatic void drain(void)\n{\n}\n\n"
        "static void NAMED(first_step)(void)\n{\n    drain();\n}\n\n"
        "static void NAMED(second_step)(void)\n{\n    NAMED(first_step)();\n}\n"
    ),
    "view.h": (
        "QT_BEGIN_NAMESPACE\nclass VIEW_EXPORT View final : public QObject\n{\n    Q_OBJECT\n"
        "public slots:\n    void press();\nsignals:\n    void pressed(int x);\n};\n"
        "QT_END_NAMESPACE\n"
        "class URL final : public View {};\n"
        "template <typename T> struct Box { T get() const; };\n"
        "template <typename T> T Box<T>::get() const { return T(); }\n"
    ),
    "rate.h": (
        '#ifndef RATE_H\n#ifdef __cplusplus\nextern "C" {\n#endif\n'
        "extern int base_rate;\n"
        "static inline int twice_rate(int x) { return 2 * x; }\n"
        "#ifdef __cplusplus\n}\n#endif\n#endif\n"
    ),
    "rate.cpp": '#include "rate.h"\nTEST_F(Rates, Doubles) { twice_rate(base_rate); }\n',
    "Kind.h": (
        "#import <Foundation/Foundation.h>\nNS_ASSUME_NONNULL_BEGIN\n"
        "typedef NS_ENUM(NSInteger, Kind) {\n  KindA,\n};\n"
        "FOUNDATION_EXPORT NSString *const KindName;\nvoid KindSetUp(Kind kind);\n"
        "NS_ASSUME_NONNULL_END\n"
    ),
    "lists.c": (
        "LIST_HEAD(waiting);\nstatic DEFINE_HASHTABLE(ports, 8);\n"
        "DEFINE_ATTRIBUTE(flags, get_flags,\n    set_flags);\n"
        "static DEFINE_PER_CPU(struct load, cpu_load);\n"
        "EXPORTED(int, sum_of)(int a, int b)\n{\n    return a + b;\n}\n"
        "int twice_sum(void)\n{\n    return 2 * sum_of(1, 2);\n}\n"
    ),
    "area.cpp": (
        "struct RECT { int left; };\nvoid paint() { struct RECT area{}; struct RECT other{ 1 }; }\n"
        "struct API Empty {};\n"
    ),
    "deco.h": (
        "struct AREA_API Deco : Base {\n  AREA_USED int sizeOf() const AREA_NOEXCEPT;\n};\n"
        "AREA_API int depthOf() AREA_NOEXCEPT;\n"
    ),
    "ring.cppm": "export module ring;\nexport int ringLength() { return 1; }\n",
    "kernel.cu": (
        "__global__ void scaleRows(float* a, int n) {\n  a[n] *= 2.0f;\n}\n"
        "template <class T> __global__ void fill(T* a) {}\n"
        "void launchScale(float* a, int n) {\n"
        "  scaleRows<<<(n + 255) / 256, 256>>>(a, n);\n"
        "  fill<float><<<1, 2>>>(a);\n}\n"
        "int blocksOf(int n) { return n / 32; }\n"
        "void launchAll(int n) {\n  dim3 grid(blocksOf(n)), block(32);\n}\n"
    ),
}


@pytest.fixture(scope="module")
def repositories(
    django_db_setup: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    base = Path(os.path.realpath(tmp_path_factory.mktemp("c")))
    with ingested_once(django_db_blocker, base, {"audio": AUDIO}):
        yield


@pytest.fixture
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    # Another process may keep the machine busy.
    monkeypatch.setattr(callers, "PARSE_SECONDS", 60.0)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("audio", ["cpp namespace x.h:2-8 audio"]),
        ("Sampler", ["cpp class x.h:3-7 audio.Sampler"]),
        ("gainOf", ["cpp method x.h:6-6 audio.Sampler.gainOf"]),
        ("lowest", ["c prototype plain.h:2-2 lowest"]),
        ("first_step", ["c function macro.c:7-10 first_step"]),
        ("scaleRows", ["cuda function kernel.cu:1-3 scaleRows"]),
        ("View", ["cpp class view.h:2-9 View"]),
        ("press", ["cpp method view.h:6-6 View.press"]),
        ("pressed", ["cpp method view.h:8-8 View.pressed"]),
        ("get", ["cpp method view.h:12-12 Box.get", "cpp function view.h:13-13 Box.get"]),
        ("URL", ["cpp class view.h:11-11 URL"]),
        ("base_rate", ["c variable rate.h:5-5 base_rate"]),
        ("Doubles", ["cpp function rate.cpp:2-2 Doubles"]),
        ("Kind", ["objc enum Kind.h:3-5 Kind"]),
        ("KindA", ["objc member Kind.h:4-4 Kind.KindA"]),
        ("KindName", ["objc variable Kind.h:6-6 KindName"]),
        ("waiting", ["c variable lists.c:1-1 waiting"]),
        ("ports", ["c variable lists.c:2-2 ports"]),
        ("flags", ["c variable lists.c:3-4 flags"]),
        ("cpu_load", ["c variable lists.c:5-5 cpu_load"]),
        ("sum_of", ["c function lists.c:6-9 sum_of"]),
        ("Deco", ["cpp struct deco.h:1-3 Deco"]),
        ("sizeOf", ["cpp method deco.h:2-2 Deco.sizeOf"]),
        ("depthOf", ["cpp prototype deco.h:4-4 depthOf"]),
        ("ringLength", ["cpp function ring.cppm:2-2 ringLength"]),
        ("area", []),
        ("other", []),
        ("Empty", ["cpp struct area.cpp:3-3 Empty"]),
        ("KindSetUp", ["objc prototype Kind.h:7-7 KindSetUp"]),
    ],
)
def test_definitions_have_the_language_of_the_content(
    post: Post, name: str, found: list[str]
) -> None:
    status, answer = post("symbol-definitions", name=name)
    assert status == 200, answer
    assert [
        f"{each['language']} {each['kind']} {each['relPath']}:{each['startLine']}-{each['endLine']}"
        f" {each['symbol']}"
        for each in answer["results"]
    ] == found


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("scaleRows", ["kernel.cu:6 launchScale"]),
        ("fill", ["kernel.cu:7 launchScale"]),
        ("blocksOf", ["kernel.cu:11 launchAll"]),
        ("first_step", ["macro.c:14 second_step"]),
        ("drain", ["macro.c:9 first_step"]),
        ("twice_rate", ["rate.cpp:2 Doubles"]),
        ("sum_of", ["lists.c:12 twice_sum"]),
    ],
)
def test_launches_of_kernels_and_calls_by_macros_are_calls(
    post: Post, name: str, found: list[str]
) -> None:
    status, answer = post("find-callers", name=name)
    assert status == 200, answer
    assert [
        f"{each['relPath']}:{each['startLine']} {each['symbol']}" for each in answer["results"]
    ] == found


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("EXPORTED", ["lists.c:6"]),
        ("DEFINE_PER_CPU", ["lists.c:5"]),
        ("VIEW_EXPORT", ["view.h:2"]),
        ("Q_OBJECT", ["view.h:4"]),
    ],
)
def test_macros_that_the_grammar_cannot_read_have_references(
    post: Post, name: str, found: list[str]
) -> None:
    _, answer = post("symbol-references", name=name)
    assert [f"{each['relPath']}:{each['startLine']}" for each in answer["results"]] == found
