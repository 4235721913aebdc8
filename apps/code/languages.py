"""File types by name: one table for eligibility, chunking and highlighting.

Only the grammars in this table are used. Others are not safe: that of COBOL, for instance, never
returns. The parse process imports this module too, so it imports no libraries.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from apps.code.contents import type_by_content
from apps.code.values import words


@dataclass(frozen=True)
class FileType:
    """A language, and the names of its files."""

    name: str
    grammar: str  # of tree-sitter; "": its files are split by lines
    lexer: str  # of Pygments
    extensions: tuple[str, ...] = ()  # lower case, without the dot
    names: tuple[str, ...] = ()  # whole file names, lower case
    prose: bool = False  # long lines are paragraphs, not minified code
    component: bool = False  # a file defines a component that has its name


def _code(
    name: str,
    extensions: str,
    *,
    grammar: str | None = None,
    lexer: str = "",
    names: str = "",
    **flags: bool,
) -> FileType:
    return FileType(
        name,
        name if grammar is None else grammar,
        lexer or name,
        tuple(extensions.split()),
        tuple(names.split()),
        **flags,
    )


_lines = partial(_code, grammar="")
_prose = partial(_code, grammar="", prose=True)
# Components of a framework: their grammars find the code in them.
_page = partial(_code, lexer="html", component=True)


# Names and extensions are compared in lower case.
FILE_TYPES: tuple[FileType, ...] = (
    _code("python", "py pyi pyw pyx", names="sconstruct sconscript wscript"),
    _code("javascript", "js mjs cjs"),
    _code("jsx", "jsx", grammar="javascript", lexer="javascript"),
    _code("typescript", "ts mts cts"),
    _code("tsx", "tsx", lexer="typescript"),
    _code("java", "java"),
    _code("kotlin", "kt kts"),
    _code("go", "go"),
    _code("rust", "rs"),
    _code(
        "ruby", "rb rake gemspec ru",
        names="gemfile rakefile podfile fastfile vagrantfile brewfile guardfile capfile dangerfile",
    ),
    _code("php", "php phtml"),
    _code("c", "c h"),
    _code("cpp", "cc cpp cxx c++ hh hpp hxx h++ ipp inl tpp ino cppm ixx"),
    _code("cuda", "cu cuh"),
    _code("csharp", "cs csx"),
    _code("swift", "swift"),
    _code("scala", "scala sc sbt"),
    _code("lua", "lua"),
    _code("haskell", "hs"),
    _code("elixir", "ex exs"),
    _code("zig", "zig zon"),
    _code(
        "bash", "sh bash zsh ksh bats",
        names=".bashrc .bash_profile .bash_aliases .profile .zshrc .zprofile pkgbuild",
    ),
    _code("css", "css"),
    _code("scss", "scss", grammar="scss"),
    _code("html", "html htm xhtml"),
    _code(
        "json", "json jsonc json5 webmanifest ipynb",
        names=".babelrc .eslintrc .prettierrc .swcrc",
    ),
    _code("yaml", "yaml yml", names=".clang-format .clang-tidy"),
    _code("toml", "toml", names="pipfile"),
    _code(
        "dockerfile", "dockerfile containerfile", lexer="docker",
        names="dockerfile containerfile",
    ),
    _code("make", "mk mak", names="makefile gnumakefile kbuild"),
    _code("objc", "m mm", lexer="objective-c"),
    _code("dart", "dart"),
    _code("r", "r"),
    _code("julia", "jl"),
    _code("perl", "pl pm t"),
    _code("ocaml", "ml"),
    _code("erlang", "erl hrl"),
    _code("terraform", "tf hcl"),
    _code("proto", "proto", lexer="protobuf"),
    _code("graphql", "graphql gql graphqls"),
    _lines("groovy", "groovy gradle", names="jenkinsfile"),
    _code("nextflow", "nf", grammar="groovy", lexer="groovy"),
    _code("powershell", "ps1 psm1 psd1"),
    _lines("sql", "sql ddl psql"),
    _page("vue", "vue"),
    _page("svelte", "svelte"),
    _page("astro", "astro"),
    _page("razor", "razor"),
    _code("cshtml", "cshtml", grammar="razor", lexer="html"),
    _lines("less", "less sass styl", lexer="css"),
    _lines(
        "template", "j2 jinja jinja2 tmpl tpl hbs mustache ejs erb haml pug twig liquid",
        lexer="django",
    ),
    _code("clojure", "clj cljs cljc edn bb"),
    _code("fsharp", "fs fsx"),
    _lines("fsharp_signature", "fsi", lexer="fsharp"),
    _code("apex", "cls trigger apex", lexer="java"),
    _code("gdscript", "gd"),
    _lines("visualbasic", "vb vbs bas", lexer="vbnet"),
    _lines("ocamli", "mli mll mly", lexer="ocaml"),
    _lines("nim", "nim nims nimble"),
    _lines("crystal", "cr"),
    _lines("d", "d di"),
    _lines("pascal", "pas pp dpr lpr", lexer="delphi"),
    _lines("ada", "adb ads"),
    _lines("fortran", "f f77 f90 f95 f03 f08 for"),
    _lines("lisp", "lisp lsp el cl", lexer="common-lisp"),
    _lines("scheme", "scm ss rkt"),
    _code("elm", "elm"),
    _lines("purescript", "purs", lexer="haskell"),
    _lines("gleam", "gleam", lexer="rust"),
    _code("verilog", "v sv svh vh", lexer="systemverilog"),
    _lines("vhdl", "vhd vhdl"),
    _code("solidity", "sol"),
    _lines("assembly", "asm s nasm", lexer="nasm"),
    _code("glsl", "glsl vert frag geom comp tesc tese"),
    _code("hlsl", "hlsl"),
    _code("metal", "metal", grammar="cpp", lexer="cpp"),
    _lines("wgsl", "wgsl"),
    _lines("cobol", "cob cbl cpy"),
    _lines("abap", "abap"),
    _lines("tcl", "tcl"),
    _lines("awk", "awk"),
    _lines("fish", "fish"),
    _lines("nushell", "nu", lexer="bash"),
    _lines("vim", "vim", names=".vimrc vimrc"),
    _lines("matlab", "matlab", lexer="matlab"),
    _code("nix", "nix"),
    _lines(
        "starlark", "bzl bazel star", lexer="python",
        names="build workspace module.bazel tiltfile",
    ),
    _code("cmake", "cmake", names="cmakelists.txt"),
    _lines("meson", "", lexer="meson", names="meson.build meson_options.txt"),
    _code("bicep", "bicep", lexer="text"),
    _lines("rego", "rego", lexer="rego"),
    _lines("cue", "cue jsonnet libsonnet", lexer="jsonnet"),
    _lines("thrift", "thrift avdl fbs capnp"),
    _lines("prisma", "prisma", lexer="text"),
    _lines(
        "xml", "xml xsd xsl xslt wsdl xaml csproj vbproj fsproj vcxproj props targets resx plist "
        "pom storyboard xib",
    ),
    _lines("batch", "bat cmd", lexer="batch"),
    _lines(
        "ini", "ini cfg conf cnf properties service desktop",
        names=".env .editorconfig .gitconfig .pylintrc .flake8 .coveragerc .gitmodules "
        "caddyfile procfile",
    ),
    _lines(
        "ignore", "", lexer="text",
        names=".gitignore .dockerignore .npmignore .prettierignore .eslintignore .helmignore "
        ".gcloudignore .codeinfoignore",
    ),
    _lines("gomod", "", lexer="text", names="go.mod"),
    _lines("just", "", lexer="text", names="justfile"),
    _lines("diff", "diff patch"),
    _prose("markdown", "md markdown mdx mdown mdc", grammar="markdown", lexer="markdown"),
    _prose(
        "text", "txt text in", lexer="text",
        names="license licence copying copyright notice readme authors contributors changelog "
        "changes history install news todo maintainers thanks version .gitattributes codeowners "
        ".mailmap .nvmrc .node-version .python-version .ruby-version .tool-versions manifest.in "
        ".browserslistrc",
    ),
    _prose("restructuredtext", "rst", lexer="restructuredtext"),
    _prose("asciidoc", "adoc asciidoc asc", lexer="text"),
    _prose("org", "org", lexer="text"),
    _prose("tex", "tex sty bib", lexer="tex"),
    _prose("typst", "typ", lexer="text"),
)  # fmt: skip

UNKNOWN = FileType("text", "", "text")
BY_NAME: Mapping[str, FileType] = {kind.name: kind for kind in FILE_TYPES}

# Names that count without their extension: `Dockerfile.dev` and `README.old`, but not `build.log`.
STEMS = words("dockerfile containerfile makefile jenkinsfile readme license changelog")


_BY_EXTENSION = {extension: kind for kind in FILE_TYPES for extension in kind.extensions}
_BY_FILE_NAME = {name: kind for kind in FILE_TYPES for name in kind.names}
# Ignored suffixes: `settings.py.example` is Python.
TEMPLATE_SUFFIXES = (".example", ".sample", ".template", ".dist")


def extension_of(path: str) -> str:
    """The last extension, lower-cased and without its dot; "" for `Makefile` and `.env`."""
    stem, dot, extension = path.rpartition("/")[2].rpartition(".")
    return extension.lower() if dot and stem else ""


def known_type(path: str) -> FileType | None:
    """The type of a file by its name or extension; None if it is unknown."""
    name = path.rpartition("/")[2].lower()
    if name.endswith(TEMPLATE_SUFFIXES):
        for suffix in TEMPLATE_SUFFIXES:
            name = name.removesuffix(suffix)
    file_type = _BY_FILE_NAME.get(name) or _BY_EXTENSION.get(extension_of(name))
    stem = name.partition(".")[0]
    return file_type or (_BY_FILE_NAME[stem] if stem in STEMS else None)


def grammar_of(language: str) -> str:
    """The grammar of a type by its name; "" if it has none."""
    return BY_NAME[language].grammar if language in BY_NAME else ""


def language_of(path: str, data: bytes = b"") -> FileType:
    """The type of a file by its name, else by the interpreter in its first line, else plain
    text. Its content decides between languages that share an extension."""
    decided = type_by_content(extension_of(path), data)
    if decided:
        return BY_NAME[decided]
    return known_type(path) or _by_interpreter(data) or UNKNOWN


INTERPRETERS = {
    **dict.fromkeys(("sh", "dash", "zsh", "ksh"), "bash"),
    "node": "javascript",
    "rscript": "r",
}


def _by_interpreter(data: bytes) -> FileType | None:
    """The type of a script by its first line (`#!`). A version after the name is ignored."""
    if not data.startswith(b"#!"):
        return None
    words = data.split(b"\n", 1)[0][2:256].decode("utf-8", "replace").replace("/", " ").split()
    names = (word.lower().rstrip("0123456789.") for word in words)
    known = (BY_NAME.get(INTERPRETERS.get(name, name)) for name in names)
    return next(filter(None, known), None)
