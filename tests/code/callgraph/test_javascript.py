"""The call graph of JavaScript and TypeScript."""

from tests.code.callgraph.edges import edges, imported


def test_modules_export_and_import_names() -> None:
    found = edges(
        {
            "lib/a.ts": "export function one() {}\nexport default class Box { open() {} }\n",
            "lib/index.ts": (
                "export * from './a';\nexport { one as uno } from './a';\n"
                "export { default as Box } from './a';\n"
                "export {\n  // renamed\n  two as deux,\n};\n"
                "const two = () => {};\n"
            ),
            "main.ts": """\
                import Crate from './lib/a.js';
                import * as lib from './lib';
                import { one, uno, Box, deux } from './lib/index';

                export function main() {
                  one(); uno(); deux(); lib.one();
                  new Crate().open();
                  const box = new Box();
                  box.open();
                }
                """,
        }
    )
    assert found == [
        "main -> lib/a.ts:one",
        "main -> lib/a.ts:one",
        "main -> lib/index.ts:two",
        "main -> lib/a.ts:one",
        "main -> lib/a.ts:Box",
        "main -> lib/a.ts:Box.open",
        "main -> lib/a.ts:Box",
        "main -> lib/a.ts:Box.open",
    ]


def test_required_modules_are_followed() -> None:
    found = edges(
        {
            "a.js": "function one() {}\nmodule.exports = { one, two() {} };\n",
            "b.js": "module.exports = function build() {};\nexports.three = () => {};\n",
            "c.js": """\
                const a = require('./a');
                const { one: uno } = require('./a');
                const build = require('./b');
                function use() { a.one(); uno(); build(); a.two(); }
                """,
        }
    )
    assert found == [
        *["use -> a.js:one", "use -> a.js:one", "use -> b.js:build", "use -> a.js:exports.two"]
    ]


def test_types_of_fields_parameters_and_callbacks_are_known() -> None:
    found = edges(
        {
            "a.ts": """\
                interface Sink { put(x: string): void; done: (x: number) => void }
                class Pipe<T extends Sink> {
                  private sinks: Sink[] = [];
                  constructor(private readonly first: T, readonly log = new Log()) {}
                  get head(): Sink { return this.first; }
                  run({ sink }: { sink: Sink }, each?: Sink | null) {
                    this.first.put('');
                    this.log.write();
                    this.head.put('');
                    each!.done(1);
                    this.sinks.forEach((one) => one.put(''));
                    visit((it) => it.put(''));
                    (each as Log).write();
                  }
                }
                class Log { write() {} }
                function visit(fn: (it: Sink) => void) { fn(null!); }
                """
        }
    )
    assert found == [
        *["Pipe.constructor -> Log", "Pipe.run -> Sink.put", "Pipe.run -> Log.write"],
        *["Pipe.run -> Sink.put", "Pipe.run -> Sink.done", "Pipe.run -> Sink.put"],
        *["Pipe.run -> visit", "Pipe.run -> Sink.put", "Pipe.run -> Log.write"],
    ]


def test_this_and_objects_that_functions_return() -> None:
    found = edges(
        {
            "a.ts": """\
                class Base { stop() {} }
                class Timer extends Base {
                  start = () => { this.tick(); super.stop(); };
                  tick() { return { again: () => this.start() }; }
                }
                const tools = { build() {}, make: () => tools.build() };
                function create() { return { open() {}, close: () => {} } as const; }
                const made = create();
                tools.make(); made.open(); new Timer().tick().again();
                """
        }
    )
    assert found == [
        *["Timer.start -> Timer.tick", "Timer.start -> Base.stop"],
        *["Timer.tick.again -> Timer.start", "tools.make -> tools.build", "a.ts -> create"],
        *["a.ts -> tools.make", "a.ts -> create.open", "a.ts -> Timer"],
        *["a.ts -> Timer.tick", "a.ts -> Timer.tick.again"],
    ]


def test_local_names_and_globals_are_not_definitions_of_the_module() -> None:
    found = edges(
        {
            "a.ts": """\
                import fs from 'fs';
                function run() {}
                function parameter(run: () => void) { run(); }
                function local({ run }) { run(); }
                function used() { setTimeout(run, 1); fs.run(); parseInt('1'); }
                """,
            "b.ts": "export function setTimeout() {}\nexport function parseInt() {}\n",
        }
    )
    assert found == []


def test_import_targets_are_files_aliases_and_packages_of_the_repository() -> None:
    files = {
        "tsconfig.json": '{\n // paths\n "compilerOptions": {"paths": {"@/*": ["src/*"]}}}',
        "src/a.ts": "",
        "packages/kit/package.json": '{"name": "@acme/kit"}',
        "packages/kit/src/index.ts": "",
        "packages/kit/src/deep/util.ts": "",
        "src/b.tsx": (
            "import '@/a';\nimport x from '@acme/kit';\nimport y from '@acme/kit/deep/util';\n"
            "import z from 'react';\nimport('./a');\nexport * from './missing';\n"
        ),
    }
    assert imported(files, "src/b.tsx") == {
        "@/a": ["src/a.ts"],
        "@acme/kit default": ["packages/kit/src/index.ts"],
        "@acme/kit/deep/util default": ["packages/kit/src/deep/util.ts"],
        "react default": [],
        "./a": ["src/a.ts"],
        "./missing *": [],
    }
