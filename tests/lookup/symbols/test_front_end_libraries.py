"""What libraries and bundlers add to front ends: components and functions that are used without an
import, functions that a call makes, imports of workers and texts, and names of one letter."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.lookup.symbols.conftest import Post, callers_of, importers_of
from tests.support.ingested import ingested_once

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.door,
    pytest.mark.usefixtures("repositories", "patience"),
]

NUXT: dict[str, str | bytes] = {
    "nuxt.config.ts": "export default defineNuxtConfig({})\n",
    "app/components/base/Card.vue": (
        "<script setup>\nimport { ref } from 'vue'\nconst price = useMoney(3)\n</script>\n"
        "<template><b>{{ price }}</b></template>\n"
    ),
    "app/components/SideBar.vue": "<template><BaseCard /></template>\n",
    "app/components/Foot.vue": (
        "<script setup>\nimport { ref } from 'vue'\n</script>\n"
        "<template><side-bar /><base-card /><Missing /></template>\n"
    ),
    "app/composables/useMoney.ts": "export function useMoney(n: number) { return n }\n",
}
PLAIN: dict[str, str | bytes] = {
    "src/main.js": (
        "import { createApp } from 'vue'\nimport DataGrid from './DataGrid.vue'\n"
        "createApp({}).component('DataGrid', DataGrid)\n"
    ),
    "src/DataGrid.vue": "<template><i /></template>\n",
    "src/Home.vue": (
        "<script>\nimport { ref } from 'vue'\nimport Row from './Row.vue'\n"
        "export default { components: { Row } }\n</script>\n"
        '<template>\n<data-grid />\n<component :is="Row" />\n</template>\n'
    ),
    "src/Row.vue": "<template><i /></template>\n",
    "src/List.svelte": (
        "<script>\n  import Item from './Item.svelte'\n  import { t } from './a'\n</script>\n"
        "<svelte:component this={Item} />\n"
        "{#each [1] as n (t(n))}<i {@attach tip(t(n))}></i>{/each}\n"
    ),
    "src/Item.svelte": "<b />\n",
    "src/a.ts": "export function t(key: string) { return key }\n",
    "src/404.vue": "<template><i /></template>\n",
    "src/use.ts": (
        "import { t } from './a'\n"
        "import late from './404.vue'\n"
        "import raw from './a.ts?raw'\n"
        "const url = new URL('./worker.ts', import.meta.url)\n"
        "export const label = () => t('x')\n"
    ),
    "src/worker.ts": "self.onmessage = () => 1\n",
    "src/stores.ts": (
        "import { defineStore } from 'pinia'\n"
        "import { create } from 'zustand'\n"
        "import { makeApi } from 'own'\n"
        "export const useBasket = defineStore('basket', { state: () => ({}) })\n"
        "export const useBear = create<Bear>()((set) => ({ n: 0 }))\n"
        "export const api = makeApi({ retries: 1 })\n"
        "export function go() {\n  useBasket()\n  useBear((s) => s.n)\n  api.load()\n}\n"
    ),
    "own/package.json": '{"name": "own", "types": "src/index.d.ts", "main": "lib/index.js"}',
    "own/src/index.d.ts": "export declare function makeApi(options: object): unknown\n",
    "own/src/index.js": (
        "class Api { load() { return 1 } }\nexport function makeApi(options) { return new Api() }\n"
    ),
    "old/lib.js": (
        "exports.alpha = () => 1\nexports.beta = function () { return exports.alpha() }\n"
    ),
    "old/money.ts": "export default function money(n: number) { return n }\n",
    "old/later.ts": (
        "export async function later() {\n"
        "  const { default: d } = await import('./money')\n  return d(1)\n}\n"
    ),
}
POSSIBLE = frozenset({"possible"})


@pytest.fixture(scope="module")
def repositories(
    django_db_setup: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    base = Path(os.path.realpath(tmp_path_factory.mktemp("libraries")))
    with ingested_once(django_db_blocker, base, {"nuxt": NUXT, "plain": PLAIN}):
        yield


@pytest.mark.parametrize(
    ("repository", "symbol", "found"),
    [
        ("nuxt", "useMoney", ["Card.vue:3"]),
        ("nuxt", "Card", ["Foot.vue:4 Foot", "SideBar.vue:1 SideBar"]),
        ("nuxt", "SideBar", ["Foot.vue:4 Foot"]),
        ("plain", "DataGrid", ["Home.vue:7 Home"]),
    ],
)
def test_what_is_used_without_an_import_may_be_meant(
    post: Post, repository: str, symbol: str, found: list[str]
) -> None:
    assert callers_of(post, symbol, POSSIBLE, repository=repository) == found


@pytest.mark.parametrize(
    ("symbol", "found"),
    [
        ("Row", ["Home.vue:8 Home"]),
        ("Item", ["List.svelte:5 List"]),
        ("useBasket", ["stores.ts:8 go"]),
        ("useBear", ["stores.ts:9 go"]),
        ("load", ["stores.ts:10 go"]),
        ("makeApi", ["stores.ts:6"]),
        ("alpha", ["lib.js:2 beta"]),
        ("money", ["later.ts:3 later"]),
        ("t", ["List.svelte:6 List", "List.svelte:6 List", "use.ts:5 label"]),
    ],
)
def test_chosen_made_and_renamed_functions_have_callers(
    post: Post, symbol: str, found: list[str]
) -> None:
    assert callers_of(post, symbol, repository="plain") == found


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("src/a.ts", ["src/List.svelte:3", "src/use.ts:1", "src/use.ts:3"]),
        ("src/404.vue", ["src/use.ts:2"]),
        ("src/worker.ts", ["src/use.ts:4"]),
        ("own/src/index.js", ["src/stores.ts:3"]),
    ],
)
def test_files_with_short_names_workers_texts_and_declared_files_have_importers(
    post: Post, path: str, found: list[str]
) -> None:
    assert importers_of(post, path, repository="plain") == found


def test_a_name_of_one_letter_has_references(post: Post) -> None:
    _, answer = post("symbol-references", name="t", repository="plain")
    assert [f"{each['relPath']}:{each['startLine']}" for each in answer["results"]] == [
        *("src/a.ts:1", "src/List.svelte:3", "src/List.svelte:6"),
        *("src/use.ts:1", "src/use.ts:5"),
    ]
