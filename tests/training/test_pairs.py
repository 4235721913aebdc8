"""Pairs of a doc comment and its code, in each language."""

import pytest

from training.extract import Pair, pairs_in

SNIPPETS = {
    "a/store.py": (
        'class Store:\n    def put(self, key):\n        """Keep a value under a key.\n\n'
        '        More.\n        """\n        check(key)\n        self.rows[key] = 1\n',
        "Store.put",
    ),
    "a/store.js": (
        "class Store {\n  /**\n   * Keep a value under a key.\n   * @param {string} key\n   */\n"
        "  put(key) {\n    check(key);\n    this.rows[key] = 1;\n  }\n}\n",
        "Store.put",
    ),
    "a/store.d.ts": (
        "export interface Store {\n  /** Keep a value under a key. */\n"
        "  put(key: string, value: Uint8Array): Promise<void>;\n}\n",
        "Store.put",
    ),
    "a/Store.java": (
        "class Store {\n    /**\n     * Keep a {@code value} under a key.\n     * @return nothing\n"
        "     */\n    @Override\n    public void put(String key) {\n"
        "        check(key);\n    }\n}\n",
        "Store.put",
    ),
    "a/Store.kt": (
        "class Store {\n    /** Keep a value under a key. */\n    fun put(key: String) {\n"
        "        check(key)\n        rows[key] = 1\n    }\n}\n",
        "Store.put",
    ),
    "a/Store.swift": (
        "class Store {\n    /// Keep a value under a key.\n    public func put(key: String) {\n"
        "        check(key)\n        rows[key] = 1\n    }\n}\n",
        "Store.put",
    ),
    "a/Store.cs": (
        "class Store\n{\n    /// <summary>\n    /// Keep a value under a key.\n    /// </summary>\n"
        "    [Pure]\n    public void Put(string key)\n    {\n        Check(key);\n    }\n}\n",
        "Store.Put",
    ),
    "a/store.go": (
        "// Keep a value under a key.\nfunc (s *Store) Put(key string) {\n"
        "\tcheck(key)\n\ts.n++\n}\n",
        "Put",
    ),
    "a/store.rs": (
        "impl Store {\n    /// Keep a value under a key.\n    #[inline]\n"
        "    pub fn put(&mut self) {\n"
        "        check();\n    }\n}\n",
        "Store.put",
    ),
    "a/store.rb": (
        "class Store\n  # Keep a value under a key.\n  def put(key)\n    check(key)\n  end\nend\n",
        "Store.put",
    ),
    "a/Store.php": (
        "<?php\nclass Store\n{\n    /**\n     * Keep a value under a key.\n     *\n"
        "     * @return void\n     */\n    public function put($key)\n    {\n        check($key);\n"
        "    }\n}\n",
        "Store.put",
    ),
    "a/store.c": (
        "/**\n * \\brief Keep a value under a key.\n * \\param key the key\n */\nint\n",
        None,
    ),
    "a/store.h": (
        "/* Keep a value under a key. */\nstatic int put(const char *key)\n{\n\tcheck(key);\n}\n",
        "put",
    ),
    "a/Store.scala": (
        "object Store {\n  /** Keep a value under a key. */\n  def put(key: String): Unit = {\n"
        "    check(key)\n    rows(key) = 1\n  }\n}\n",
        "Store.put",
    ),
    "a/store.lua": (
        "-- Keep a value under a key.\nfunction M.put(key)\n  check(key)\n  rows[key] = 1\nend\n",
        "M.put",
    ),
    "a/Store.hs": (
        "-- | Keep a value under a key.\nput :: Key -> Store -> Store\nput key store =\n"
        "  check key `seq` insert key store\n",
        "put",
    ),
    "a/store.ex": (
        'defmodule Store do\n  @doc """\n  Keep a value under a key.\n  """\n'
        "  @spec put(key) :: t\n"
        "  def put(key) do\n    check(key)\n  end\nend\n",
        "Store.put",
    ),
    "a/store.sh": (
        "# Keep a value under a key.\nput() {\n  check\n  echo 1\n}\n",
        "put",
    ),
}


def definitions(path: str, source: str) -> list[Pair]:
    return [pair for pair in pairs_in(path, source.encode()) if pair.kind == "definition"]


@pytest.mark.parametrize("path", SNIPPETS)
def test_a_doc_comment_is_the_query_for_its_definition(path: str) -> None:
    source, symbol = SNIPPETS[path]

    found = definitions(path, source)

    if symbol is None:
        assert found == []
        return
    (pair,) = found
    assert (pair.question, pair.symbol) == ("Keep a value under a key.", symbol)
    assert "Keep" not in pair.body
    assert "heck" in pair.body or path.endswith(".d.ts")


def test_a_definition_ends_where_the_next_begins() -> None:
    source = (
        '"""Stores."""\n\ndef put(key):\n    """Keep a value under a key."""\n    a = 1\n'
        "    return a\n\n\ndef other():\n    return 2\n"
    )

    (pair,) = definitions("a.py", source)

    assert pair.body == "def put(key):\n    a = 1\n    return a"


def test_the_chunk_of_a_definition_goes_on_and_names_what_follows() -> None:
    source = (
        'def put(key):\n    """Keep a value under a key."""\n    a = 1\n    return a\n\n\n'
        "def other():\n    return 2\n"
    )

    (chunk,) = [pair for pair in pairs_in("a.py", source.encode()) if pair.kind == "chunk"]

    assert chunk.symbol == "put put other"
    assert "return 2" in chunk.body
    assert "Keep" not in chunk.body


def test_a_file_comment_is_the_query_for_its_beginning() -> None:
    source = '"""Keeps values under keys."""\n\nimport os\n\n\nclass Store:\n    pass\n'

    (pair,) = [pair for pair in pairs_in("a.py", source.encode()) if pair.kind == "file"]

    assert pair.question == "Keeps values under keys."
    assert pair.symbol == "Store"
    assert "Keeps" not in pair.body


@pytest.mark.parametrize(
    "comment",
    ["Copyright 2020 Someone.", "eslint-disable no-undef here", "TODO: keep a value", "Short"],
)
def test_uninformative_comments_are_not_queries(comment: str) -> None:
    source = f"/** {comment} */\nfunction put(key) {{\n  check(key);\n  return 1;\n}}\n"

    assert definitions("a.js", source) == []
