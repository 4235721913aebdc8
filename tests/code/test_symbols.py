"""The definitions of a file: names, kinds, paths and lines, in each language."""

from collections.abc import Iterator

import pytest

from apps.code.syntax.pieces import MAX_DECLARATIONS
from apps.code.values import Symbol
from apps.index.parsing import Chunker
from tests.code.language_samples import SAMPLES

pytestmark = pytest.mark.door

SOURCES = {sample.path: sample.source for sample in SAMPLES}

KINDS = {
    "a.py": "constant LIMIT, constant FIRST, constant SECOND, type Alias, class Shop, "
    "field Shop.open, method Shop.price, function Shop.price.inner, function later",
    "a.js": "constant LIMIT, function plain, class Shop, field Shop.count, method Shop.price, "
    "function arrow, function exports.sold, method bar, function baz, function qux, "
    "function Shop.prototype.close, function each",
    "a.ts": "interface Priced, method Priced.price, type Id, enum Kind, class Shop, "
    "method Shop.open, method Shop.price, namespace Inner, function Inner.deep, function outer, "
    "constant LIMIT, function arrow",
    "a.tsx": "function App",
    "A.java": "class Shop, field Shop.LIMIT, field Shop.MORE, constructor Shop.Shop, "
    "method Shop.price, enum Shop.Kind, member Shop.Kind.ONE, member Shop.Kind.TWO, "
    "method Shop.Kind.each, interface Shop.Inner, method Shop.Inner.quote, record Shop.Pair",
    "a.kt": "constant LIMIT, type Id, class Shop, property Shop.count, method Shop.price, "
    "object Single, enum Kind, member Kind.A, member Kind.B, function ext",
    "a.go": "constant LIMIT, variable first, variable second, struct Shop, interface Priced, "
    "method Priced.Price, type Alias, function New, method Shop.Price",
    "a.rs": "constant LIMIT, struct Shop, enum Kind, member Kind.A, member Kind.B, trait Priced, "
    "method Priced.quote, method Priced.given, method Shop.price, module inner, "
    "function inner.deep, macro shout, type Alias",
    "a.rb": "module Market, constant Market.LIMIT, class Market.Shop, method Market.Shop.price, "
    "method Market.Shop.open, method top",
    "a.php": "constant LIMIT, interface Priced, method Priced.quote, class Shop, "
    "constant Shop.MORE, property Shop.count, method Shop.price, trait Sold, method Sold.sell, "
    "enum Kind, member Kind.A, function plain",
    "a.c": "macro LIMIT, macro MAX, type Point, struct Shop, enum Kind, member Kind.A, "
    "member Kind.B, type callback, variable count, variable more, prototype declared, "
    "function price",
    "a.cpp": "namespace market, class market.Shop, method market.Shop.quote, "
    "method market.Shop.open, function market.Shop.price, struct Box, type Alias, "
    "constant LIMIT, function ref",
    "a.cs": "class Market.Shop, field Market.Shop.Limit, property Market.Shop.Count, "
    "method Market.Shop.Price, enum Market.Shop.Kind, member Market.Shop.Kind.A, "
    "member Market.Shop.Kind.B",
    "a.swift": "variable limit, class Shop, property Shop.count, method Shop.price, "
    "protocol Priced, method Priced.quote, enum Kind, member Kind.a, member Kind.b, "
    "method Shop.extra",
    "a.scala": "object Market, field Market.limit, method Market.price, class Shop, "
    "trait Priced, method Priced.quote",
    "a.lua": "variable Shop, constant LIMIT, function plain, function Shop.price, "
    "function Shop.open, function close",
    "a.hs": "module Market, type Shop, member Shop.Big, member Shop.Small, type Id, class Priced, "
    "method Priced.quote, function price, value limit",
    "a.ex": "module Market.Shop, function Market.Shop.price, function Market.Shop.hidden, "
    "macro Market.Shop.shout",
    "a.zig": "variable std, struct Shop, method Shop.price, function plain",
    "a.sh": "constant LIMIT, constant MORE, function price",
    "a.css": "selector shop, animation spin",
    "a.json": "key name, key scripts",
    "a.yaml": "key name, key jobs",
    "a.md": "heading The shop, heading The shop > Its `price`, heading Other",
    "a.proto": "message Shop, service S",
    "a.graphql": "type Shop, union U",
    "a.tf": "block shop",
    "a.vue": "component a, variable limit, function price, function open, function open.later",
    "a.svelte": "component a, variable limit, function price, function row",
    "a.astro": "component a, variable limit, function price",
    "Cart.razor": "component Cart, class Row",
    "a.cu": "function price, class Shop, method Shop.open",
    "a.cls": "class Shop, enum Shop.Kind, member Shop.Kind.A, field Shop.count, "
    "constructor Shop.Shop, method Shop.price",
    "a.trigger": "trigger Sold",
    "a.gd": "class Shop, signal sold, enum Kind, member Kind.A, constant LIMIT, variable count, "
    "function price, class Inner, method Inner.deep",
    "a.sol": "library L, contract Shop, event Shop.Sold, error Shop.Closed, field Shop.count, "
    "modifier Shop.onlyOpen, function Shop.price",
    "a.glsl": "variable limit, function price, struct Shop",
    "a.hlsl": "function price",
    "a.clj": "namespace shop, variable limit, function price, macro shout, record Shop, "
    "protocol Priced, function quote",
    "a.fs": "module Market, value Market.limit, function Market.price, record Market.Shop, "
    "field Market.Shop.Count, union Market.Kind, member Market.Kind.A, member Market.Kind.B, "
    "type Market.Box, method Market.Box.Open",
    "a.elm": "module Shop, type Kind, member Kind.A, member Kind.B, type Model, function price",
    "a.nix": "variable limit, function price, function f",
    "CMakeLists.txt": "module market, constant LIMIT, function price, macro shout, target shop",
    "a.bicep": "variable limit, variable count, resource shop, module inner, output o",
    "a.sv": "package market, module shop, function shop.price, function shop.run, class Box",
    # No grammar: the word that declares tells.
    "a.sql": "table shop, view sold",
    "a.nim": "type Shop, function price",
}


# Path → source and definitions, of kinds that the samples lack.
MORE = {
    "b.jl": (
        "mutable struct SplayTree{K} <: Abs{K}\n"
        "    a::Int\n"
        "end\n"
        "abstract type AbstractHeap{VT} end\n"
        "function Base.union(s::S{K}) where K\n"
        "    1\n"
        "end\n"
        "function sized(x::Int)::Int\n"
        "    x\n"
        "end\n"
        "short(x) where T = 1\n"
        "Base.length(x::S) = 2\n"
        "checked(x::Int)::Bool = x\n"
        "struct Leaf <: Tree\n"
        "end\n"
        "SortedSet{K}(x) where {K} = 1\n",
        "struct SplayTree, type AbstractHeap, function Base.union, function sized, function short, "
        "function Base.length, function checked, struct Leaf, function SortedSet",
    ),
    "b.m": (
        "@interface Player : NSObject\n"
        "@property (nonatomic) BOOL *enabled;\n"
        "@property NSString *title;\n"
        "@end\n",
        "interface Player, property Player.enabled, property Player.title",
    ),
    "b.cpp": (
        "template <> struct is_unit<char32_t> : std::true_type {};\n"
        "template <> inline bool assign<bool>(int x) { return x; }\n",
        "struct is_unit, function assign",
    ),
    "b.ex": (
        "defmodule M do\n  @type t(s) :: %X{}\n  @typep op :: a\n  def f, do: 1\nend\n",
        "module M, type M.t, type M.op, function M.f",
    ),
    "b.erl": (
        "-module(shop).\n-type parse_state() :: a | b.\n-opaque hidden() :: atom().\nf() -> 1.\n",
        "module shop, type parse_state, type hidden, function f",
    ),
    "b.ml": (
        "module type S = sig\n  val x : int\nend\n",
        "interface S",
    ),
    "b.cs": (
        "static class Texts\n{\n"
        "    extension<T>(IEnumerable<T> rows) where T : class\n    {\n"
        "        public bool IsEmpty => !rows.Any();\n"
        "        public T First() { return rows.First(); }\n    }\n"
        "    extension(string text) {\n"
        "        public int Words => text.Split(' ').Length;\n    }\n"
        "    static int After(int x) => x;\n}\n",
        "class Texts, property Texts.IsEmpty, method Texts.First, property Texts.Words, "
        "method Texts.After",
    ),
    "b.rb": (
        "class Cart\n"
        "  attr_accessor :owner, 'total'\n"
        "  private attr_reader :paid?\n"
        "  mattr_accessor :limit\n"
        "  delegate :size, :empty?, to: :@items\n"
        "  def_delegators :@items, :push\n"
        "  define_method(:clear) do\n    1\n  end\n"
        '  define_method("get_#{field}") { 1 }\n'
        "  alias_method :reset, :clear\n"
        "  alias wipe clear\n"
        "  puts :owner\n"
        "end\n",
        "class Cart, property Cart.owner, property Cart.total, property Cart.paid?, "
        "property Cart.limit, method Cart.size, method Cart.empty?, method Cart.push, "
        "method Cart.clear, method Cart.reset, method Cart.wipe",
    ),
    "b.mli": (
        "type 'a qlist = (q * 'a) list\n"
        "val get : t -> int\n"
        "module type IO = sig end\n"
        'external now : unit -> float = "now"\n',
        "type qlist, function get, module IO, function now",
    ),
    "B.hs": (
        "module Shop.Cart where\ndata P = P\n  { ratio :: !Rational\n  , name :: String }\n",
        "module Cart, type P, member P.P, field P.ratio, field P.name",
    ),
    "b.sol": ("type Price is uint128;\n", "type Price"),
    "b.clj": (
        '(defprotocol Priced (price-of [this] "doc") (paid? [this]))\n',
        "protocol Priced, function price-of, function paid?",
    ),
    "b.fs": (
        "module Shop\nlet rec private sum rows =\n    0\nlet (|Big|_|) n = Some n\n",
        "module Shop, function Shop.sum, function Shop.Big",
    ),
    "b.sv": (
        "package p;\n  typedef enum logic {IDLE} state_t;\nendpackage\n",
        "package p, type p.state_t",
    ),
}


@pytest.fixture(scope="module")
def chunker() -> Iterator[Chunker]:
    with Chunker(parse_seconds=10) as opened:
        yield opened


def symbols(chunker: Chunker, path: str, source: str) -> tuple[Symbol, ...]:
    return chunker.chunk_many([(path, source.encode())])[0].symbols


@pytest.mark.parametrize("path", KINDS)
def test_each_name_has_its_kind_and_path(chunker: Chunker, path: str) -> None:
    found = symbols(chunker, path, SOURCES[path])
    assert ", ".join(f"{each.kind} {each.path}" for each in found) == KINDS[path]
    assert all(each.path.endswith(each.name) for each in found)


@pytest.mark.parametrize("path", MORE)
def test_definitions_with_parameters_types_and_fields_are_found(
    chunker: Chunker, path: str
) -> None:
    source, expected = MORE[path]
    found = symbols(chunker, path, source)
    assert ", ".join(f"{each.kind} {each.path}" for each in found) == expected


def test_lines_span_the_declaration_and_the_signature_precedes_the_body(chunker: Chunker) -> None:
    table = "TABLE = {\n    1: 2,\n}\n"
    source = f"import os\n\n{table}\n\nclass A:\n    def b(self, c: int):\n        pass\n"
    assert symbols(chunker, "a.py", source) == (
        Symbol("TABLE", "TABLE", "constant", 3, 5, "TABLE"),
        Symbol("A", "A", "class", 8, 10, "class A"),
        Symbol("b", "A.b", "method", 9, 10, "def b(self, c: int)"),
    )


def test_equations_of_a_function_and_its_type_are_one_definition(chunker: Chunker) -> None:
    source = "price :: Int -> String\nprice 0 = x\nprice n = y\n"
    assert symbols(chunker, "a.hs", source) == (
        Symbol("price", "price", "function", 1, 3, "price :: Int -> String"),
    )


def test_overloads_are_separate_definitions(chunker: Chunker) -> None:
    source = "class A {\n  int get(int a) { return a; }\n  int get(String a) { return 0; }\n}\n"
    found = symbols(chunker, "A.java", source)
    assert [(each.path, each.start_line) for each in found] == [
        ("A", 1),
        ("A.get", 2),
        ("A.get", 3),
    ]


def test_the_declarations_of_a_file_are_limited(chunker: Chunker) -> None:
    source = "".join(f"#define M{i} {i}\n" for i in range(MAX_DECLARATIONS + 5))
    assert len(symbols(chunker, "a.h", source)) == MAX_DECLARATIONS


def test_prose_has_no_declarations(chunker: Chunker) -> None:
    assert symbols(chunker, "a.txt", "class Shop\ndef price\n") == ()


def test_a_selector_that_names_a_class_twice_declares_it_once(chunker: Chunker) -> None:
    source = ".button, a.button {\n  color: red;\n}\n"
    assert [each.path for each in symbols(chunker, "a.css", source)] == [".button, a.button"]
