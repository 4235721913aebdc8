"""Joins our modules and stylesheets, so that a page requests one file of each kind.

`js/app.js` and `css/site.css` are valid as they stand, and import the others. Joined, each module
is a function that returns its exports, since two modules may use the same name, without its lines
of comments, a sixth of what is sent. A module that two pages' scripts import must run once:
`app.js`, which every page has, owns all that it imports, then `chat.js`; other scripts import these
joined files.
"""

import re
from collections.abc import Callable
from posixpath import dirname, join, normpath

# In this order, as the pages load them.
SHARED = ("js/app.js", "js/chat.js")
SHEET = re.compile(r'^@import "([^"]+)";\n', re.M)
IMPORT = re.compile(r'^import (?:\{([\w\s,]+)\} from )?"(\.[^"]+)";\n', re.M)
EXPORT = re.compile(r"^export (?=(?:async )?(?:function|const|class) (\w+))", re.M)
COMMENT = re.compile(r"^ *//.*\n", re.M)
UNKNOWN = re.compile(r"^(?:import|export)\b.*", re.M)

# Name below the static folder → text; name → address.
Read = Callable[[str], str]
Address = Callable[[str], str]


def sheet(name: str, read: Read) -> str:
    """Return a stylesheet with those that it imports in their place."""
    return SHEET.sub(lambda found: sheet(_beside(name, found[1]), read), read(name))


def script(name: str, read: Read, address: Address) -> str:
    """Return a module with those that it imports and no shared file owns.

    Raises ValueError for a form of import or export that it does not know, RecursionError for
    modules that import each other.
    """
    earlier = SHARED[: SHARED.index(name)] if name in SHARED else SHARED
    owners: dict[str, str] = {}
    for owner in (*earlier, name):
        owners = dict.fromkeys(_modules(owner, read), owner) | owners
    modules = _modules(name, read)
    parts = []
    for owner in earlier:
        if names := [_variable(one) for one in modules if owners[one] == owner]:
            parts.append(f'import {{ {", ".join(names)} }} from "{address(owner)}";\n')
    parts += [_function(one, read(one)) for one in modules if owners[one] == name]
    return "".join(parts)


def _modules(name: str, read: Read) -> list[str]:
    """Return a module and all that it imports, in the order in which they run."""
    found: dict[str, None] = {}

    def visit(module: str) -> None:
        for _, path in IMPORT.findall(read(module)):
            if _beside(module, path) not in found:
                visit(_beside(module, path))
        found[module] = None

    visit(name)
    return list(found)


def _function(name: str, text: str) -> str:
    exports = ", ".join(EXPORT.findall(text))
    body = IMPORT.sub(lambda found: _constants(name, *found.groups()), COMMENT.sub("", text))
    body = EXPORT.sub("", body)
    if unknown := UNKNOWN.search(body):
        raise ValueError(f"{name} cannot be joined: {unknown[0]}")
    start, end = f"export const {_variable(name)} = (() => {{", f"return {{ {exports} }};\n}})();"
    return f"// {name}\n{start}\n{body}{end}\n"


def _constants(name: str, names: str | None, path: str) -> str:
    if not names:
        return ""
    return f"const {{{names.replace(' as ', ': ')}}} = {_variable(_beside(name, path))};\n"


def _variable(name: str) -> str:
    return re.sub(r"\W", "_", name)


def _beside(name: str, path: str) -> str:
    return normpath(join(dirname(name), path))
