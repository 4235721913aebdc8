"""One small file for each language, with its declarations and the symbol around its word HERE."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Sample:
    """A file, the names declared in it, and the symbol and signature around its word HERE."""

    path: str
    source: str
    names: str
    symbol: str = ""
    signature: str = ""


SAMPLES = [
    Sample(
        "a.py",
        '''
LIMIT: int = 1
FIRST, SECOND = 1, 2
type Alias = int
@decorated
class Shop(Base):
    """Sells."""
    open = True
    @property
    def price(self, of: str) -> int:
        # a note
        def inner(): pass
        return "HERE"
async def later(): ...
''',
        "LIMIT FIRST SECOND Alias Shop open price inner later",
        "Shop.price",
        "def price(self, of: str) -> int",
    ),
    Sample(
        "a.js",
        """
const LIMIT = 1;
function plain(x) { return x }
export default class Shop extends Base {
  static count = 1;
  price(of) {
    return 'HERE'
  }
}
const arrow = (x) => { return 1 };
exports.sold = function () {};
module.exports = { bar() {}, baz: function() {}, qux: () => 1 };
Shop.prototype.close = function() {};
function* each() {}
""",
        "LIMIT plain Shop count price arrow sold bar baz qux close each",
        "Shop.price",
        "price(of)",
    ),
    Sample("a.jsx", "const App = () => {\n  return <p>HERE</p>\n}\n", "App", "App"),
    Sample(
        "a.ts",
        """
export interface Priced<T> { price(): void; name: string }
type Id = 'a' | 'b';
enum Kind { A, B }
abstract class Shop implements Priced<number> {
  abstract open(): void;
  price(): void {
    say('HERE')
  }
}
namespace Inner { export function deep(): void {} }
declare function outer(x: number): string;
export const LIMIT: number = 1;
const arrow = async (x: number): Promise<void> => {};
""",
        "Priced price Id Kind Shop open Inner deep outer LIMIT arrow",
        "Shop.price",
        "price(): void",
    ),
    Sample("a.tsx", "export function App(): Node {\n  return <p>HERE</p>\n}\n", "App", "App"),
    Sample(
        "A.java",
        """
package p;
@Entity
public class Shop<T> extends Base implements Priced {
  private static final int LIMIT = 1, MORE;
  public Shop() {}
  @Override public int price(int x) throws Bad {
    return "HERE";
  }
  enum Kind { ONE, TWO; void each() {} }
  interface Inner { int quote(); }
  record Pair(int a) { }
}
""",
        "Shop LIMIT MORE price Kind ONE TWO each Inner quote Pair",
        "Shop.price",
        "@Override public int price(int x) throws Bad",
    ),
    Sample(
        "a.kt",
        """
const val LIMIT = 1
typealias Id = String
class Shop(val x: Int) {
  val count = 1
  fun price(): Int {
    return "HERE"
  }
}
object Single { }
enum class Kind { A, B }
fun String.ext(x: Int): Int { return 1 }
""",
        "LIMIT Id Shop count price Single Kind A B ext",
        "Shop.price",
        "fun price(): Int",
    ),
    Sample(
        "a.go",
        """
package p
const LIMIT = 1
var first, second int
type Shop struct { f int }
type Priced interface { Price() }
type Alias = int
func New(x int) error { return nil }
func (s *Shop) Price() string {
	return "HERE"
}
""",
        "LIMIT first second Shop Priced Price Alias New",
        "Shop.Price",
        "func (s *Shop) Price() string",
    ),
    Sample(
        "a.rs",
        """
const LIMIT: u8 = 1;
#[derive(Debug)]
pub struct Shop<T> { f: T }
enum Kind { A, B(u8) }
trait Priced { fn quote(&self); fn given() {} }
impl<T> Shop<T> {
    /// Says it.
    pub fn price(&self) -> Self {
        "HERE"
    }
}
mod inner { fn deep() {} }
macro_rules! shout { () => {} }
type Alias = u8;
""",
        "LIMIT Shop Kind A B Priced quote given price inner deep shout Alias",
        "Shop.price",
        "pub fn price(&self) -> Self",
    ),
    Sample(
        "a.rb",
        """
module Market
  LIMIT = 1
  class Shop < Base
    def price(of)
      "HERE"
    end
    def self.open; end
  end
end
def top; end
""",
        "Market LIMIT Shop price open top",
        "Market.Shop.price",
        "def price(of)",
    ),
    Sample(
        "a.php",
        """<?php
const LIMIT = 1;
interface Priced { function quote(); }
abstract class Shop extends Base {
  const MORE = 1; public $count = 1;
  function price() {
    return 'HERE';
  }
}
trait Sold { function sell() {} }
enum Kind: string { case A = 'a'; }
function plain() {}
""",
        "LIMIT Priced quote Shop MORE count price Sold sell Kind A plain",
        "Shop.price",
        "function price()",
    ),
    Sample(
        "a.c",
        """
#define LIMIT 1
#define MAX(a,b) ((a)>(b))
typedef struct { int x; } Point;
struct Shop { int a; };
enum Kind { A, B };
typedef int (*callback)(int);
static int count = 1, *more;
int declared(int);
static char *price(int x) {
  return "HERE";
}
""",
        "LIMIT MAX Point Shop Kind A B callback count more declared price",
        "price",
        "static char *price(int x)",
    ),
    Sample(
        "a.cpp",
        """
namespace market {
class Shop : public Base { public: int quote() const { return 1; } bool open(int); };
}
int market::Shop::price(int x) {
  return "HERE";
}
template <typename T> struct Box { T v; };
using Alias = int;
constexpr int LIMIT = 1;
Shop& ref() {}
""",
        "market Shop quote open price Box Alias LIMIT ref",
        "market.Shop.price",
        "int market::Shop::price(int x)",
    ),
    Sample(
        "a.cs",
        """
namespace Market {
  [Attr]
  public class Shop<T> : Base {
    const int Limit = 1;
    public int Count { get; set; }
    int Price(int x) {
      return "HERE";
    }
    enum Kind { A, B }
  }
}
""",
        "Shop Limit Count Price Kind A B",
        "Market.Shop.Price",
        "int Price(int x)",
    ),
    Sample(
        "a.swift",
        """
let limit = 1
class Shop: Base {
  var count = 1
  func price() -> Int {
    return "HERE"
  }
}
protocol Priced { func quote() }
enum Kind { case a, b(Int) }
extension Shop { func extra() {} }
""",
        "limit Shop count price Priced quote Kind a b extra",
        "Shop.price",
        "func price() -> Int",
    ),
    Sample(
        "a.scala",
        """
object Market {
  val limit = 1
  def price(x: Int): Int = {
    "HERE"
  }
}
case class Shop(a: Int)
trait Priced { def quote: Int }
""",
        "Market limit price Shop Priced quote",
        "Market.price",
        "def price(x: Int): Int",
    ),
    Sample(
        "a.lua",
        """
local Shop = {}
LIMIT = 1
local function plain() end
function Shop:price(x)
  return "HERE"
end
Shop.open = function() end
return { close = function() end }
""",
        "Shop LIMIT plain price open close",
        "Shop.price",
        "function Shop:price(x)",
    ),
    Sample(
        "a.hs",
        """
module Market where
data Shop = Big Int | Small
type Id = Int
class Priced a where
  quote :: a -> Int
-- | What it costs
price :: Int -> String
price 0 = "HERE"
price x = "more"
limit = 1
""",
        "Market Shop Big Small Id Priced quote price limit",
        "price",
    ),
    Sample(
        "a.ex",
        """
defmodule Market.Shop do
  @doc "Says it"
  @spec price(integer) :: integer
  def price(x) when x > 1 do
    "HERE"
  end
  defp hidden, do: 1
  defmacro shout(x) do x end
end
""",
        "Shop price hidden shout",
        "Market.Shop.price",
        "def price(x) when x > 1",
    ),
    Sample(
        "a.zig",
        """
const std = @import("std");
pub const Shop = struct {
    f: u8,
    pub fn price(self: Shop) void {
        say("HERE");
    }
};
fn plain(x: u8) !void {}
""",
        "std Shop price plain",
        "Shop.price",
    ),
    Sample(
        "a.sh", 'LIMIT=1\nexport MORE=2\nprice() {\n  echo "HERE"\n}\n',
        "LIMIT MORE price", "price",
    ),
    Sample("a.sql", "CREATE TABLE shop (id int);\nCREATE VIEW sold AS SELECT 1;\n", "shop sold"),
    Sample("a.html", '<main id="shop">\n<p id="price">HERE</p>\n</main>\n', "shop price"),
    Sample(
        "a.css", ".shop, #price > b {\n  content: 'HERE'\n}\n@keyframes spin { }\n", "shop spin",
    ),
    Sample(
        "a.scss", "$limit: 1;\n@mixin priced($a) {\n  content: 'HERE'\n}\n",
        "$limit priced", "priced",
    ),
    Sample(
        "a.json", '{"name": "x",\n "scripts": {\n  "build": "HERE"\n }}\n',
        "name scripts", "scripts",
    ),
    Sample("a.yaml", "name: x\njobs:\n  build:\n    run: HERE\n", "name jobs", "jobs.build"),
    Sample("a.toml", "k = 1\n[tool.x]\ny = 'HERE'\n", "k x", "tool.x"),
    Sample(
        "a.md", "Intro\n\n# The shop\ntext\n\n## Its `price`\nHERE\n\n# Other\nmore\n",
        "The shop|Its `price`|Other", "The shop > Its `price`",
    ),
    Sample(
        "Dockerfile", "FROM x AS build\nARG LIMIT=1\nENV MORE=1\nRUN HERE\n", "build LIMIT MORE",
    ),
    Sample("Makefile", "LIMIT := 1\nall: dep\n\techo HERE\n", "LIMIT all", "all"),
    Sample(
        "a.m", "@implementation Shop\n- (int)price:(int)x {\n  HERE;\n}\n@end\n",
        "Shop price", "Shop.price",
    ),
    Sample("a.dart", "class Shop {\n  int price() {\n    HERE();\n  }\n}\n", "Shop price", "Shop"),
    Sample("a.r", "price <- function(x) {\n  'HERE'\n}\nlimit <- 1\n", "price limit", "price"),
    Sample(
        "a.jl", "module Market\nfunction price(x)\n  HERE\nend\nend\n",
        "Market price", "Market.price",
    ),
    Sample("a.pl", "package Shop;\nsub price {\n  'HERE'\n}\n", "Shop price", "price"),
    Sample("a.ml", "let price x =\n  here \"HERE\"\nlet limit = 1\n", "price limit", "price"),
    Sample("a.erl", "-record(shop, {a}).\nprice(X) ->\n  'HERE'.\n", "shop price", "price"),
    Sample("a.tf", 'resource "aws_x" "shop" {\n  a = "HERE"\n}\n', "shop", "shop"),
    Sample("a.proto", "message Shop {\n  string HERE = 1;\n}\nservice S { }\n", "Shop S", "Shop"),
    Sample("a.graphql", "type Shop {\n  HERE: Int\n}\nunion U = Shop\n", "Shop U", "Shop"),
    Sample("a.ps1", 'function Get-Price {\n  "HERE"\n}\n', "Get-Price", "Get-Price"),
    Sample("a.nim", "type Shop = object\nfunc price(): int =\n  HERE\n", "Shop price"),
    Sample(
        "a.vue",
        """
<template><p :title="price(1)">HERE</p></template>
<script setup lang="ts">
const limit = 1
function price(x: number): number { return x }
const open = () => { later = () => 1 }
</script>
""",
        "limit price open later",
    ),
    Sample(
        "a.svelte",
        """
<script>
  let limit = 1
  export function price(x) {
    return "HERE"
  }
</script>
{#snippet row(x)}<p>{price(x)}</p>{/snippet}
""",
        "limit price row",
        "price",
    ),
    Sample(
        "a.astro", "---\nconst limit = 1\nfunction price() {\n  return 'HERE'\n}\n---\n<p/>\n",
        "limit price", "price",
    ),
    Sample("Cart.razor", '@page "/cart"\n<p>HERE</p>\n@code { class Row { } }\n', "Row"),
    Sample(
        "a.cu",
        "__global__ void price(float* a) {\n  a[0] = HERE;\n}\nclass Shop { void open(); };\n",
        "price Shop open", "price", "__global__ void price(float* a)",
    ),
    Sample(
        "a.cls",
        """
public with sharing class Shop {
  public enum Kind { A }
  private Integer count = 1;
  public Shop() {}
  public static void price(List<Account> xs) {
    say('HERE');
  }
}
""",
        "Shop Kind A count price",
        "Shop.price",
        "public static void price(List<Account> xs)",
    ),
    Sample(
        "a.trigger", "trigger Sold on Account (before insert) {\n  HERE();\n}\n", "Sold", "Sold",
    ),
    Sample(
        "a.gd",
        """
class_name Shop
signal sold(x)
enum Kind { A }
const LIMIT = 3
@export var count = 1
func price(x):
	return "HERE"
class Inner:
	func deep(): pass
""",
        "Shop sold Kind A LIMIT count price Inner deep",
        "price",
        "func price(x)",
    ),
    Sample(
        "a.sol",
        """
library L { }
contract Shop is Base {
  event Sold(address who);
  error Closed();
  uint256 public count;
  modifier onlyOpen() { _; }
  constructor() {}
  function price(uint256 x) external onlyOpen returns (uint256) {
    say("HERE");
  }
}
""",
        "L Shop Sold Closed count onlyOpen price",
        "Shop.price",
        "function price(uint256 x) external onlyOpen returns (uint256)",
    ),
    Sample(
        "a.glsl",
        "uniform float limit;\nvec3 price(vec3 c) {\n  return HERE;\n}\nstruct Shop { int a; };\n",
        "limit price Shop", "price", "vec3 price(vec3 c)",
    ),
    Sample("a.hlsl", "float4 price(float2 uv) {\n  return HERE;\n}\n", "price", "price"),
    Sample(
        "a.clj",
        "(ns market.shop)\n(def limit 1)\n(defn price [x]\n  (str HERE))\n(defmacro shout [x] x)\n"
        "(defrecord Shop [a])\n(defprotocol Priced (quote [this]))\n",
        "shop limit price shout Shop Priced quote", "price",
    ),
    Sample(
        "a.fs",
        """
module Market
let limit = 1
let price (x: int) =
  say "HERE"
type Shop = { Count: int }
type Kind = | A | B
type Box() =
  member this.Open() = 1
""",
        "Market limit price Shop Count Kind A B Box Open",
        "Market.price",
        "let price (x: int)",
    ),
    Sample(
        "a.elm",
        "module Shop exposing (..)\ntype Kind = A | B\ntype alias Model = { n : Int }\n"
        "price : Int -> String\nprice x =\n    let y = 1 in \"HERE\"\n",
        "Shop Kind A B Model price", "price",
    ),
    Sample(
        "a.nix",
        "let limit = 1;\n  price = x:\n    HERE;\nin { inherit price; name = 1; f = { a }: a; }\n",
        "limit price f", "price",
    ),
    Sample(
        "CMakeLists.txt",
        "project(market)\nset(LIMIT 1)\nfunction(price x)\n  message(HERE)\nendfunction()\n"
        "macro(shout)\nendmacro()\nadd_library(shop a.c)\n",
        "market LIMIT price shout shop", "price",
    ),
    Sample(
        "a.bicep",
        "param limit string = 'x'\nvar count = 1\nresource shop 'M.S/a@2021' = {\n  name: HERE\n}\n"
        "module inner './m.bicep' = { name: 'm' }\noutput o string = shop.id\n",
        "limit count shop inner o", "shop",
    ),
    Sample(
        "a.sv",
        """
package market;
endpackage
module shop #(parameter W=8) (input clk);
  function [7:0] price(input [7:0] a);
    price = HERE;
  endfunction
  task run; begin end endtask
endmodule
class Box; endclass
""",
        "market shop price run Box",
        "shop.price",
    ),
    Sample(
        "a.cbl",
        """
000100 IDENTIFICATION DIVISION.
000200 PROGRAM-ID. PAYROLL.
000300 ENVIRONMENT DIVISION.
000400 INPUT-OUTPUT SECTION.
000500 FILE-CONTROL.
000600 DATA DIVISION.
000700 FILE SECTION.
000800 FD  WAGES-FILE.
000900 01  WAGE-RECORD.
001000     05  WAGE-AMOUNT PIC 9(6)V99.
001100 WORKING-STORAGE SECTION.
001200 01  FILLER PIC X.
001300*PARAGRAPH-IN-A-COMMENT.
001400 PROCEDURE DIVISION.
001500 MAIN-LOGIC SECTION.
001600 READ-WAGES.
001700     PERFORM COMPUTE-TAX.
001800     GOBACK.
001900 COMPUTE-TAX.
002000     MULTIPLY WAGE-AMOUNT BY 2.
""",
        "PAYROLL WAGES-FILE WAGE-RECORD MAIN-LOGIC READ-WAGES COMPUTE-TAX",
    ),
    Sample(
        "free.cob",
        """
identification division.
program-id. "greeter".
procedure division.
say-hello.
    display 'Hello'.
stop run.
""",
        "greeter say-hello",
    ),
    Sample(
        "a.abap",
        """
REPORT z_orders.
CLASS lcl_other DEFINITION DEFERRED.
TYPES: BEGIN OF ty_order,
  id TYPE i,
END OF ty_order.
CONSTANTS gc_limit TYPE i VALUE 3.
CLASS lcl_order DEFINITION PUBLIC CREATE PUBLIC.
  PUBLIC SECTION.
    METHODS constructor IMPORTING iv_id TYPE i.
    CLASS-METHODS create RETURNING VALUE(ro) TYPE REF TO lcl_order.
ENDCLASS.
CLASS lcl_order IMPLEMENTATION.
  METHOD zif_priced~price_of.
  ENDMETHOD.
ENDCLASS.
FORM print_all USING pv_id.
ENDFORM.
FUNCTION z_order_read.
ENDFUNCTION.
MODULE status_0100 OUTPUT.
ENDMODULE.
""",
        "z_orders ty_order gc_limit lcl_order constructor create zif_priced~price_of print_all "
        "z_order_read status_0100",
    ),
    Sample(
        "a.nf",
        """
include { FASTQC } from './modules/fastqc'
process ALIGN {
  input:
  tuple val(id), path(reads)
  script:
  '''
  bwa mem HERE > out.bam
  '''
}
workflow QC {
  take: reads
  main:
  ALIGN(reads)
}
workflow {
  QC(Channel.of(1))
}
def helper(x) {
  return x + 1
}
class Sample {
  int size
}
""",
        "ALIGN QC helper Sample",
        "ALIGN",
        "process ALIGN",
    ),
    Sample("generic.py", "type Pair[T] = tuple[T, T]\ndef after(): ...\n", "Pair after"),
    Sample(
        "type.dart",
        "extension type UserId(int id) {\n  int twice() {\n    return HERE;\n  }\n}\n",
        "UserId twice",
        "UserId",
        "extension type UserId(int id)",
    ),
    Sample("dollars.kt", 'val text = $$"""\n  $price $${x}\n"""\nfun after() = 1\n', "text after"),
]  # fmt: skip
