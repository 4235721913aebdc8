"""Components of React, Vue, Svelte and Astro: their definitions, callers, uses and importers."""

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

SHOP: dict[str, str | bytes] = {
    "src/pricing.ts": "export function priceOf(v: string): number {\n  return v.length\n}\n",
    "src/Cart.vue": (
        "<template>\n"
        '  <div class="cart" @click="toggleDrawer">\n'
        '    <button @click="applyVoucher(code)">Apply</button>\n'
        '    <order-row v-for="row in rowsOf(code)" :key="row.id" :class="{ big: isBig(row) }" />\n'
        "    {{ isBig(code) ? 'big' : priceOf(code) }}\n"
        "  </div>\n"
        "</template>\n\n"
        '<script setup lang="ts">\n'
        "import { ref } from 'vue'\n"
        "import OrderRow from './OrderRow.vue'\n"
        "import { priceOf } from './pricing'\n\n"
        "const code = ref('')\n\n"
        "function toggleDrawer(): void {\n  code.value = ''\n}\n\n"
        "async function applyVoucher(voucher: string): Promise<number> {\n"
        "  const base = priceOf(voucher)\n"
        "  return base * 0.9\n"
        "}\n"
        "const isBig = (row: string) => row.length > 3\n"
        "const rowsOf = (rows: string) => {\n  return [rows]\n}\n"
        "</script>\n\n"
        "<style scoped>\n.cart { color: red }\n</style>\n"
    ),
    "src/OrderRow.vue": (
        "<template><p @click=\"show('é')\">{{ show(1) }}</p></template>\n"
        "<script>\n"
        "export default {\n"
        "  methods: {\n"
        "    show(n) { return this.double(n) },\n"
        "    double(n) { return 2 * n },\n"
        "  },\n"
        "}\n"
        "</script>\n"
    ),
    "src/Panel.svelte": (
        '<script lang="ts">\n'
        "  import { priceOf } from './pricing'\n"
        "  import * as ui from './ui'\n"
        "  let open = $state(false)\n"
        "  function foldPanel() {\n    open = !open\n  }\n"
        "  export const totalOf = (v: string) => priceOf(v) * 2\n"
        "</script>\n\n"
        "<button on:click={foldPanel}>fold</button>\n"
        "{#each listed() as row, i (row.id)}\n"
        "  <ui.Badge title=\"is {totalOf('a')}\" {...more(row)} on:click={() => foldPanel()} />\n"
        "{/each}\n"
        "{#if totalOf('b')}{@html totalOf('c')}{/if}\n"
    ),
    "src/ui/index.ts": "export { default as Badge } from './Badge.svelte'\n",
    "src/ui/Badge.svelte": "<b><slot /></b>\n",
    "src/Page.astro": (
        "---\n"
        "import Panel from './Panel.svelte'\n"
        "import { priceOf } from './pricing'\n"
        "function renderTotals(v: string) {\n  return priceOf(v)\n}\n"
        "---\n"
        "<Panel title={renderTotals('t')} />\n"
        "<p>{renderTotals('x')}</p>\n"
        "{['y'].map((each) => <li>{renderTotals(each)}</li>)}\n"
    ),
    "src/Panel.tsx": (
        "import { lazy, memo } from 'react'\n"
        "export const Panel = memo(function Panel() { return <p>x</p> })\n"
        "export const Late = lazy(() => import('./Use'))\n"
        "export const label = () => 'l'\n"
    ),
    "src/Use.tsx": (
        "import * as ui from './Panel'\n"
        "import { Panel } from './Panel'\n"
        "export default function Use(more: object) {\n"
        "  return <div><Panel {...more} title={ui.label()}><ui.Panel /></Panel></div>\n"
        "}\n"
        "export const direct = () => Panel()\n"
        "export const late = () => <ui.Late />\n"
    ),
}
MONOREPO: dict[str, str | bytes] = {
    "package.json": '{"name": "root", "workspaces": ["packages/*", "apps/*"]}',
    "packages/policies/package.json": (
        '{"name": "@core/policies", "main": "dist/index.js", "exports": {'
        '".": {"types": "./dist/index.d.ts", "default": "./dist/index.js"},'
        ' "./can": "./src/rules/can.ts", "./*": "./src/extra/*.ts"},'
        ' "imports": {"#log": {"default": "./src/log.ts"}}}'
    ),
    "packages/policies/src/index.ts": (
        "import { log } from '#log'\n"
        "export { canEdit } from './rules/can'\n"
        "export { default as policy } from './rules/can'\n"
        "log()\n"
    ),
    "packages/policies/src/log.ts": "export function log() {}\n",
    "packages/policies/src/extra/dates.ts": "export const today = () => 1\n",
    "packages/policies/src/rules/can.ts": (
        "export function canEdit(u: string) { return u === 'a' }\n"
        "export default function can(u: string) { return canEdit(u) }\n"
    ),
    "apps/web/package.json": '{"name": "web", "dependencies": {"@core/policies": "workspace:*"}}',
    "apps/web/tsconfig.json": (
        '{\n  // of the app\n  "extends": "./config/base", /* "files": [] */\n'
        '  "compilerOptions": {"strict": true,},\n}\n'
    ),
    "apps/web/config/base.json": (
        '{"compilerOptions": {"baseUrl": "..", "paths": {"~app/*": ["src/*"]}}}'
    ),
    "apps/web/src/route.ts": (
        "import { canEdit, policy } from '@core/policies'\n"
        "import { today } from '@core/policies/dates'\n"
        "export function route(u: string) { today(); return canEdit(u) && policy(u) }\n"
    ),
    "apps/web/src/sub.ts": (
        "import { canEdit } from '@core/policies/can'\n"
        "export function sub(u: string) { return canEdit(u) }\n"
    ),
    "apps/web/src/late.ts": (
        "export async function late() {\n"
        "  const { route: go } = await import('~app/route')\n"
        "  import('~app/sub').then(({ sub }) => sub('a'))\n"
        "  import('~app/sub').then((m) => m.sub('b'))\n"
        "  return go('c')\n"
        "}\n"
    ),
    "apps/web/src/old.js": (
        "const { sub } = require('./sub')\n"
        "module.exports = () => sub('d') + require('./route').route('e')\n"
    ),
}
PARTS: dict[str, str | bytes] = {
    "src/Form.tsx": (
        "import { forwardRef, memo } from 'react'\n"
        "const Frame = (more: object) => <form />\n"
        "const Field = forwardRef<HTMLElement, object>((more, ref) => <input {...more} />)\n"
        "export const Submit = memo(function SubmitButton() { return <b /> })\n"
        "export const Form = Object.assign(Frame, { Field })\n"
        "export function Menu() { return <ul /> }\n"
        "function MenuItem() { return <li /> }\n"
        "Menu.Item = MenuItem\n"
        "export const walk = function visit(n: number): number { return n ? visit(n - 1) : 0 }\n"
    ),
    "src/Page.jsx": (
        "import { lazy } from 'react'\n"
        "import { Form, Menu, Submit, walk } from './Form'\n"
        "const Late = lazy(() => import('./late').then((m) => ({ default: m.Chart })))\n"
        "const Other = lazy(() => import('./late').then(({ Legend }) => ({ default: Legend })))\n"
        "export class Page {\n"
        "  row = (n) => <Form><Form.Field n={n} /><Submit /></Form>\n"
        "  draw() { walk(1); return [this.row(1), <Menu.Item />, <Late />, <Other />] }\n"
        "}\n"
    ),
    "src/late.jsx": "export const Chart = () => <i />\nexport const Legend = () => <p />\n",
    "src/Tip.svelte": (
        "<script>\n"
        "  export function tip(node, text) {}\n"
        "  function shine(node) {}\n"
        "  const hint = () => 'a'\n"
        "</script>\n"
        "<b use:tip={hint()} in:shine|local>x</b>\n"
    ),
    "src/look.tsx": (
        "import styled from 'styled-components'\n"
        "export const Title = styled.h1<{ big: boolean }>`\n  size: ${(p) => p.big};\n`\n"
        "export const Wide = styled(Title)<Pick<Wider, 'a'>>`width: 9px;`\n"
        "export const Bar = styled.nav.attrs({ id: 'bar' })<Props>`color: red;`\n"
        "export const Box = styled('div')(({ theme }) => ({ color: theme.main }))\n"
        "const QUERY = gql`{ id }`\n"
        "export const Look = () => <Box><Bar /><Wide><Title big /></Wide>{QUERY}</Box>\n"
    ),
    "lib/serve.js": "module.exports = function serve(n) { return n ? serve(n - 1) : 0 }\n",
    "lib/main.js": "const serve = require('./serve')\nserve(1)\n",
}


@pytest.fixture(scope="module")
def repositories(
    django_db_setup: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    base = Path(os.path.realpath(tmp_path_factory.mktemp("front")))
    with ingested_once(django_db_blocker, base, {"shop": SHOP, "mono": MONOREPO, "parts": PARTS}):
        yield


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("toggleDrawer", "src/Cart.vue:16-18 function"),
        ("applyVoucher", "src/Cart.vue:20-23 function"),
        ("rowsOf", "src/Cart.vue:25-27 function"),
        ("Cart", "src/Cart.vue:1-32 component"),
        ("double", "src/OrderRow.vue:6-6 method"),
        ("foldPanel", "src/Panel.svelte:5-7 function"),
        ("totalOf", "src/Panel.svelte:8-8 function"),
        ("renderTotals", "src/Page.astro:4-6 function"),
        ("Late", "src/Panel.tsx:3-3 function"),
    ],
)
def test_scripts_of_components_have_definitions(post: Post, name: str, place: str) -> None:
    status, answer = post("symbol-definitions", name=name)
    assert status == 200, answer
    assert place in [
        f"{each['relPath']}:{each['startLine']}-{each['endLine']} {each['kind']}"
        for each in answer["results"]
    ]


@pytest.mark.parametrize(
    ("symbol", "found"),
    [
        ("priceOf", ["Cart.vue:5 Cart", "Cart.vue:21 applyVoucher", "Page.astro:5 renderTotals"]
                    + ["Panel.svelte:8 totalOf"]),
        ("applyVoucher", ["Cart.vue:3 Cart"]),
        ("isBig", ["Cart.vue:4 Cart", "Cart.vue:5 Cart"]),
        ("rowsOf", ["Cart.vue:4 Cart"]),
        ("show", ["OrderRow.vue:1 OrderRow", "OrderRow.vue:1 OrderRow"]),
        ("double", ["OrderRow.vue:5 show"]),
        ("totalOf", ["Panel.svelte:13 Panel", "Panel.svelte:15 Panel", "Panel.svelte:15 Panel"]),
        ("foldPanel", ["Panel.svelte:13 Panel"]),
        ("renderTotals", ["Page.astro:8 Page", "Page.astro:9 Page", "Page.astro:10 Page"]),
    ],
)  # fmt: skip
def test_calls_in_scripts_and_templates_are_found(
    post: Post, symbol: str, found: list[str]
) -> None:
    assert callers_of(post, symbol) == found


@pytest.mark.parametrize(
    ("symbol", "found"),
    [
        ("OrderRow", ["Cart.vue:4 Cart"]),
        ("Badge", ["Panel.svelte:13 Panel"]),
        ("label", ["Use.tsx:4 Use"]),
        ("Use", ["Use.tsx:7 late"]),
    ],
)
def test_an_element_calls_its_component(post: Post, symbol: str, found: list[str]) -> None:
    assert callers_of(post, symbol) == found


@pytest.mark.parametrize(
    ("symbol", "found"),
    [
        ("Frame", ["Page.jsx:6 Page.row"]),
        ("Field", ["Page.jsx:6 Page.row"]),
        ("Submit", ["Page.jsx:6 Page.row"]),
        ("MenuItem", ["Page.jsx:7 Page.draw"]),
        ("row", ["Page.jsx:7 Page.draw"]),
        ("walk", ["Form.tsx:9 walk", "Page.jsx:7 Page.draw"]),
        ("Chart", ["Page.jsx:7 Page.draw"]),
        ("Legend", ["Page.jsx:7 Page.draw"]),
        ("tip", ["Tip.svelte:6 Tip"]),
        ("shine", ["Tip.svelte:6 Tip"]),
        ("hint", ["Tip.svelte:6 Tip"]),
        ("serve", ["main.js:2", "serve.js:1 serve"]),
        *((name, ["look.tsx:9 Look"]) for name in ("Title", "Wide", "Bar", "Box")),
    ],
)
def test_parts_of_components_and_wrapped_functions_have_callers(
    post: Post, symbol: str, found: list[str]
) -> None:
    assert callers_of(post, symbol, repository="parts") == found


def test_a_component_of_a_name_is_called_by_elements_of_its_own_language(post: Post) -> None:
    calls = ["Use.tsx:4 Use", "Use.tsx:4 Use", "Use.tsx:6 direct"]
    assert callers_of(post, "Panel") == ["Page.astro:8 Page", *calls]
    assert callers_of(post, "src/Panel.tsx:2") == calls


def test_callers_of_callers_lead_through_templates(post: Post) -> None:
    found = ["Page.astro:8 Page", *["Use.tsx:4 Use"] * 2, "Use.tsx:6 direct", "Use.tsx:7 late"]
    assert callers_of(post, "Panel", depth=2) == found
    assert callers_of(post, "show", depth=2)[-1] == "Cart.vue:4 Cart"


def test_a_component_is_shown_by_the_name_of_its_file(post: Post) -> None:
    _, answer = post("find-callers", name="OrderRow")
    assert [each["callee"] for each in answer["results"]] == ["OrderRow"]


def test_names_in_templates_are_references(post: Post) -> None:
    _, answer = post("symbol-references", name="toggleDrawer")
    assert [(each["startLine"], each["kind"]) for each in answer["results"]] == [
        (16, "definition"),
        (2, "reference"),
    ]


def test_components_are_importers(post: Post) -> None:
    assert importers_of(post, "src/pricing.ts") == [
        *("src/Cart.vue:12", "src/Page.astro:3", "src/Panel.svelte:2")
    ]
    assert importers_of(post, "src/OrderRow.vue") == ["src/Cart.vue:11"]


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("packages/policies/src/index.ts", ["apps/web/src/route.ts:1"]),
        ("packages/policies/src/extra/dates.ts", ["apps/web/src/route.ts:2"]),
        ("packages/policies/src/log.ts", ["packages/policies/src/index.ts:1"]),
        ("packages/policies/src/rules/can.ts",
         ["apps/web/src/sub.ts:1", *(f"packages/policies/src/index.ts:{n}" for n in (2, 3))]),
        ("apps/web/src/route.ts", ["apps/web/src/late.ts:2", "apps/web/src/old.js:2"]),
        ("apps/web/src/sub.ts",
         [*(f"apps/web/src/late.ts:{n}" for n in (3, 4)), "apps/web/src/old.js:1"]),
    ],
)  # fmt: skip
def test_files_are_imported_by_the_names_of_packages_and_paths(
    post: Post, name: str, found: list[str]
) -> None:
    assert importers_of(post, name) == found


@pytest.mark.parametrize(
    ("symbol", "found"),
    [
        ("canEdit", ["route.ts:3 route", "sub.ts:2 sub", "can.ts:2 can"]),
        ("can", ["route.ts:3 route"]),
        ("today", ["route.ts:3 route"]),
        ("route", ["late.ts:5 late", "old.js:2 exports"]),
        ("sub", ["late.ts:3 late", "late.ts:4 late", "old.js:2 exports"]),
    ],
)
def test_callers_are_found_through_packages(post: Post, symbol: str, found: list[str]) -> None:
    assert callers_of(post, symbol) == found
