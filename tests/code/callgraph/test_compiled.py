"""The call graphs of Go, Java, Rust, C and C++."""

from tests.code.callgraph.edges import edges, imported

GO = {
    "go.mod": "module example.org/port\n\ngo 1.20\n",
    "ship/ship.go": """\
        package ship

        type Namer interface { Name() string }
        type Base struct{}
        func (b *Base) Float() {}
        type Ship struct { *Base; crew []*Sailor; by map[string]Sailor }
        func New(n int) (*Ship, error) { s := &Ship{}; s.Float(); return s, nil }
        func (s Ship) Name() string { return helper() }
        """,
    "ship/sailor.go": """\
        package ship

        type Sailor struct{}
        func (s *Sailor) Work() {}
        func helper() string { return "" }
        func (s *Ship) All(n Namer) {
            for _, one := range s.crew { one.Work() }
            s.by["a"].Work()
            n.Name()
            switch t := n.(type) { case *Ship: t.Float() }
            func(helper func()) { helper() }(nil)
        }
        """,
    "main.go": """\
        package main

        import (
            "fmt"
            boats "example.org/port/ship"
        )

        func main() {
            s, err := boats.New(1)
            s.All(nil)
            fmt.Println(err, string("a"), boats.Sailor{})
            var x boats.Sailor
            x.Work()
        }
        """,
}


def test_go_packages_receivers_and_results() -> None:
    assert edges(GO) == [
        *["main -> ship/ship.go:New", "main -> ship/sailor.go:Ship.All"],
        "main -> ship/sailor.go:Sailor.Work",
        *["Ship.All -> Sailor.Work"] * 2,
        *["Ship.All -> ship/ship.go:Namer.Name", "Ship.All -> ship/ship.go:Base.Float"],
        *["New -> Base.Float", "Ship.Name -> ship/sailor.go:helper"],
    ]
    assert imported(GO, "main.go") == {
        "fmt": [],
        "example.org/port/ship": ["ship/sailor.go", "ship/ship.go"],
    }


JAVA = {
    "src/a/App.java": """\
        package a;
        import b.Tool;
        import static b.Tool.help;
        import c.*;
        class App extends Base<Tool> {
          private final Tool tool = new Tool();
          void run(java.util.List<Tool> all, Tool other) {
            tool.use(); this.tool.use(); other.copy().use(); help(); inherited(); missing();
            for (Tool each : all) each.use();
            var made = new Star();
            made.shine();
            Runnable later = () -> other.use();
          }
        }
        """,
    "src/a/Base.java": "package a;\nclass Base<T> { void inherited() {} }\n",
    "src/b/Tool.java": (
        "package b;\npublic class Tool { public void use() {} public Tool copy() { return this; }"
        " public static void help() {} }\n"
    ),
    "src/c/Star.java": "package c;\npublic class Star { public void shine() {} }\n",
}


def test_java_packages_fields_and_bases() -> None:
    tool = "src/b/Tool.java:Tool"
    assert edges(JAVA) == [
        f"App -> {tool}",
        *[f"App.run -> {tool}.use"] * 2,
        *[f"App.run -> {tool}.copy", f"App.run -> {tool}.use", f"App.run -> {tool}.help"],
        *["App.run -> src/a/Base.java:Base.inherited", f"App.run -> {tool}.use"],
        *["App.run -> src/c/Star.java:Star", "App.run -> src/c/Star.java:Star.shine"],
        f"App.run -> {tool}.use",
    ]
    assert imported(JAVA, "src/a/App.java") == {
        "b Tool": ["src/b/Tool.java"],
        "b.Tool help": ["src/b/Tool.java"],
        "c *": ["src/c/Star.java"],
    }


RUST = {
    "src/lib.rs": """\
        mod crane;
        use crate::crane::{lift as up, Crane};
        pub struct Port { first: Crane, all: Vec<Crane>, spare: Option<Box<Crane>> }
        impl Port {
            fn new() -> Self { Port::check(); up(); Self::check(); todo() }
            fn check() {}
            fn work(&self) {
                self.first.lift();
                for each in self.all.iter() { each.lift(); }
                if let Some(one) = &self.spare { one.lift(); }
                self.spare.as_ref().unwrap().default_lift();
                assert!(self.first.lift());
            }
        }
        fn todo() -> Port { Port::new() }
        mod tests {
            use super::*;
            fn t() { todo().work(); super::todo(); }
        }
        """,
    "src/crane.rs": """\
        use super::todo;
        pub trait Lift { fn default_lift(&self) { todo(); } }
        pub struct Crane;
        impl Lift for Crane {}
        impl Crane { pub fn lift(&self) -> bool { true } }
        pub fn lift() {}
        """,
}


def test_rust_modules_and_methods() -> None:
    crane = "src/crane.rs:Crane.lift"
    assert edges(RUST) == [
        "Lift.default_lift -> src/lib.rs:todo",
        *["Port.new -> Port.check", "Port.new -> src/crane.rs:lift", "Port.new -> Port.check"],
        "Port.new -> todo",
        *[f"Port.work -> {crane}"] * 3,
        *["Port.work -> src/crane.rs:Lift.default_lift", f"Port.work -> {crane}"],
        "todo -> Port.new",
        *["tests.t -> todo", "tests.t -> Port.work", "tests.t -> todo"],
    ]
    assert imported(RUST, "src/lib.rs")["self mod crane"] == ["src/crane.rs"]
    assert imported(RUST, "src/crane.rs") == {"super todo": ["src/lib.rs"]}


C = {
    "lib/a.h": "struct item { struct item *next; int (*run)(void); };\nint shared(int a);\n",
    "lib/a.c": """\
        #include "a.h"
        #include <stdio.h>
        #define TWICE(x) ((x) * 2)
        static int helper(struct item *one) { return one->run() + shared(1); }
        int shared(int a) { printf("%d", TWICE(a)); return a; }
        int start(void) { return helper(0); }
        """,
    "b.c": """\
        #include "lib/a.h"
        static int helper(void) { return 1; }
        int main(void) { int shared_too = shared(2); return helper() + start(); }
        """,
}
CPP = {
    "k.hpp": """\
        namespace port {
        class Crane { public: void lift(); };
        class Ship : public Base {
         public:
          int moor(Crane *crane);
          int twice() { return moor(&spare) + float_(); }
          Crane spare;
          std::vector<Crane> all;
        };
        }
        """,
    "base.hpp": "class Base { public: int float_() { return 1; } };\n",
    "k.cpp": """\
        #include "k.hpp"
        using namespace port;
        void port::Crane::lift() {}
        int port::Ship::moor(Crane *crane) {
          crane->lift(); this->twice(); twice();
          for (auto &each : all) { each.lift(); }
          auto other = new Crane();
          other->lift();
          return 0;
        }
        """,
}


def test_c_functions_are_global_unless_they_are_static() -> None:
    assert edges(C) == [
        *["main -> lib/a.c:shared", "main -> helper", "main -> lib/a.c:start"],
        *["helper -> shared", "shared -> TWICE", "start -> helper"],
    ]
    assert imported(C, "b.c") == {"lib/a.h": ["lib/a.h"]}


def test_methods_of_cpp_are_found_where_they_are_defined() -> None:
    found = edges(CPP)
    assert found[:3] == ["Ship.moor -> Crane.lift", *["Ship.moor -> k.hpp:port.Ship.twice"] * 2]
    assert found[3:6] == [
        *["Ship.moor -> Crane.lift", "Ship.moor -> k.hpp:port.Crane", "Ship.moor -> Crane.lift"],
    ]
    assert "port.Ship.twice -> k.cpp:Ship.moor" in found
    assert "port.Ship.twice -> base.hpp:Base.float_" in found
