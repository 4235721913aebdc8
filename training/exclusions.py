"""Packages and folders that are never trained on, and the parts of any package that are vendored,
generated or tests."""

import re
from functools import cache
from pathlib import Path

NEVER = Path(__file__).parent / "never_train_on.txt"

# Names under which projects of the list are packaged, split or vendored beside their own.
ALIASES = """
    abseil absl libabsl actioncable actionmailbox actionmailer actionpack actiontext actionview
    activejob activemodel activerecord activestorage activesupport railties
    bats cats-core commons-lang commons-lang2 commons-lang3 circe-core exposed-core fmtlib libfmt
    guzzlehttp http4s-core illuminate jackson-databind kotlinx-coroutines kotlinx.coroutines
    laravel-framework libcurl libuv1 libuv-dev messagepack mini-nvim newtonsoft newtonsoft.json
    newtonsoft-json nlohmann nlohmann-json nlohmann-json3 psr7 pycurl pydantic-core
    @reduxjs/redux rubyonrails serde-core serde-derive serde_derive serde_core serde_json serde-json
    snapkit
    starlette-core tokio-macros tokio-util tokio-stream tokio_macros tokio_util trpc-server uvloop
    vapor-core ziglang
    """.split()  # noqa: SIM905
# In these a name of the list is part of the name of something split from it.
PREFIXES = ("@trpc/", "@vitest/", "php-illuminate-", "ruby-action", "ruby-active", "rust-tokio")
# Too common as names of folders and files to say what is in them.
ORDINARY = frozenset(
    "async click cats circe curl echo express framework json plug rack rails redis redux requests "  # noqa: SIM905
    "rich click vapor gin chi tokio underscore zig exposed fmt axios flask".split()
)

_DISTRIBUTION = re.compile(r"^(golang-(github-)?|librust-|ruby-|php-|node-|haskell-|lib(?=[a-z]))")
_VERSION = re.compile(r"[-_@]v?\d[\w.+~-]*$")

NOT_ITS_OWN = re.compile(
    r"(^|/)(_?vendor(ed|_bundled)?|_vendored_packages|third[-_]?party|3rd[-_]?party|externals?"
    r"|extern|deps|node_modules|bower_components|site-packages|bundled|pods|subprojects)/",
    re.IGNORECASE,
)
NOT_ITS_PRODUCT = re.compile(
    r"(^|/)(tests?|testing|__tests__|specs?|testdata|fixtures?|examples?|samples?|benchmarks?|docs?"
    r"|l10n|i18n|locales?|migrations|__mocks__|debian)/"
    r"|(^|/)(test_|conftest)[^/]*$|(_test|[._-]spec|[._-]test|_pb2|_pb2_grpc|\.pb|\.min)\.\w+$"
    r"|zz_generated|\.pb\.go$|generated",
    re.IGNORECASE,
)


@cache
def never() -> frozenset[str]:
    """The names of the list in lower case: `owner/name`, `name`, and packages."""
    lines = NEVER.read_text(encoding="utf-8").lower().splitlines()
    names = {line.strip() for line in lines if line.strip() and not line.startswith("#")}
    return frozenset(names | {name.rpartition("/")[2] for name in names} | set(ALIASES))


def is_never(package: str) -> bool:
    """Return True if a package is in the list, by its name in any registry, or part of one that
    is."""
    name = package.lower().replace("_", "-")
    bare = re.sub(r"-dev$", "", _DISTRIBUTION.sub("", name))
    last = bare.rpartition("/")[2]
    tails = {bare, last, bare.partition("-")[2], re.sub(r"[-.]?\d[\d.]*$", "", bare)}
    return name in never() or name.startswith(PREFIXES) or bool(tails & never())


def is_excluded(path: str) -> bool:
    """Return True for a file that is vendored, a copy from a listed project, or no product code."""
    if NOT_ITS_OWN.search(path) or NOT_ITS_PRODUCT.search(path):
        return True
    names = never() - ORDINARY
    parts = [_VERSION.sub("", part) for part in path.lower().split("/")]
    return any(part in names for part in parts[:-1]) or parts[-1].partition(".")[0] in names
