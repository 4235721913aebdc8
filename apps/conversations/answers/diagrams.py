"""Draw mermaid diagrams as SVG in separate processes, and sanitise them.

Drawing runs mermaid's JavaScript on text that a model wrote, so it runs in processes with a time
and a memory limit, one for each theme at the same time. `apps.core.concurrency.computed` says how
many diagrams are drawn at once, and for whom. The page shows the result as an image, where browsers
run no script and load nothing; elements that could do either are removed as well.
"""

import base64
import hashlib
import json
import logging
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import find_spec
from xml.etree import ElementTree

from apps.core.concurrency.computed import TimedOut, Work, computing
from apps.core.system import crashes, programs
from apps.core.system.command_lines import install_extra

logger = logging.getLogger("codeinfo.conversations")

MAX_SOURCE_CHARS = 20_000
# Wall-clock time; the process limits itself to 15 s of CPU.
TIME_LIMIT_SECONDS = 30.0
# Both themes together. A source of MAX_SOURCE_CHARS gives about 600 kB.
MAX_OUTPUT_BYTES = 4_000_000
MAX_REASON_CHARS = 500
MAX_CACHED = 128
# The colours of static/css/tokens.css: an image has no access to them.
THEMES = (
    {
        **dict.fromkeys(("background", "tertiaryColor", "edgeLabelBackground"), "#f8f9fb"),
        **dict.fromkeys(("textColor", "primaryTextColor", "noteTextColor"), "#14181d"),
        "primaryColor": "#ffffff",
        "primaryBorderColor": "#878f9b",
        "lineColor": "#5f6874",
        "secondaryColor": "#eef0f4",
        "noteBkgColor": "#fdf3df",
        "noteBorderColor": "#ecd3a0",
    },
    {
        "darkMode": True,
        **dict.fromkeys(("background", "tertiaryColor", "edgeLabelBackground"), "#181c21"),
        **dict.fromkeys(("textColor", "primaryTextColor", "noteTextColor"), "#e9ebee"),
        "primaryColor": "#20252b",
        "primaryBorderColor": "#68717e",
        "lineColor": "#949daa",
        "secondaryColor": "#2a3038",
        "noteBkgColor": "#2a2211",
        "noteBorderColor": "#5b4719",
    },
)

# The process imports neither Django nor this project.
# `-I`: modules come from the installation alone, not from the current folder or PYTHONPATH.
COMMAND = (sys.executable, "-I", "-X", "faulthandler", "-c")
DRAW = """
import json, os, resource, sys
resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
resource.setrlimit(resource.RLIMIT_CPU, (15, 15))
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
import mermaidx
config = {"securityLevel": "strict", "htmlLabels": False, "flowchart": {"htmlLabels": False}}
job = json.load(sys.stdin)
config["themeVariables"] = job["theme"]
sys.excepthook = lambda kind, error, trace: print(str(error)[:500], file=sys.stderr)
json.dump(mermaidx.render(job["source"], theme="base", config=config).svg(), sys.stdout)
sys.stdout.flush()
os._exit(0)  # mermaidx prepares for another drawing, which takes as long as this one
"""

SVG = "{http://www.w3.org/2000/svg}"
FORBIDDEN = frozenset(
    {"script", "foreignObject", "iframe", "image", "a", "animate", "set", "audio"}
)


@dataclass(frozen=True)
class Diagram:
    """A diagram.

    light, dark: `data:` URIs, one per theme.
    width, height: in CSS pixels.
    """

    light: str
    dark: str
    width: int
    height: int


@dataclass(frozen=True)
class NotDrawn:
    """A diagram that could not be drawn, and why."""

    reason: str


# The latest outcomes by hash of the source, with failures, so that none is drawn twice.
outcomes: dict[str, Diagram | NotDrawn] = {}
_lock = threading.Lock()


def drawn(source: str) -> Diagram | NotDrawn | None:
    """The cached outcome of a source; None if it was not drawn yet. Never draws."""
    return outcomes.get(_key(source))


def draw(source: str) -> Diagram | NotDrawn:
    """Draw a diagram or return it from the cache. Takes seconds; do not call on the event loop.

    Raises Unavailable OVERLOADED, Conflict RATE_LIMITED, and Ended.
    """
    key = _key(source)
    if (known := outcomes.get(key)) is not None:
        return known
    with computing(TIME_LIMIT_SECONDS) as work:
        outcome = outcomes.get(key) or _draw(source, work)
    with _lock:
        outcomes[key] = outcome
        if len(outcomes) > MAX_CACHED:
            del outcomes[next(iter(outcomes))]
    return outcome


def _key(source: str) -> str:
    return hashlib.sha256(source.encode()).hexdigest()


def _draw(source: str, work: Work) -> Diagram | NotDrawn:
    if len(source) > MAX_SOURCE_CHARS:
        return NotDrawn("The diagram is too long.")
    if find_spec("mermaidx") is None:
        return NotDrawn(f"run {install_extra('pages')} and start codeinfo again.")
    with ThreadPoolExecutor(len(THEMES)) as pool:
        drawings = list(pool.map(lambda theme: _drawing(source, theme, work), THEMES))
    failed = next((drawing for drawing in drawings if isinstance(drawing, NotDrawn)), None)
    return failed or _diagram([drawing for drawing in drawings if isinstance(drawing, bytes)])


def _drawing(source: str, theme: Mapping[str, str | bool], work: Work) -> bytes | NotDrawn:
    """The output of a drawing process, or why there is none. Raises Ended."""
    job = json.dumps({"source": source, "theme": theme}).encode()
    try:
        done = programs.run(
            [*COMMAND, DRAW],
            env={},
            data=job,
            seconds=TIME_LIMIT_SECONDS,
            most_bytes=MAX_OUTPUT_BYTES // len(THEMES),
            started=work.kills,
        )
        work.check()
    except (subprocess.TimeoutExpired, TimedOut):
        return NotDrawn("Drawing took too long.")
    except programs.OutputTooLarge:
        return NotDrawn("The drawing is too large.")
    except OSError as error:
        return NotDrawn(f"The drawing process did not start: {error}")
    if done.returncode == 0:
        return done.stdout
    errors = done.stderr.decode(errors="replace")
    if done.returncode < 0:
        errors, *stack = errors.partition("Fatal Python error")
        facts = {"stack": "".join(stack)[: crashes.MOST_BYTES].splitlines()}
        logger.warning("drawing process lost", extra={"context": facts})
    return NotDrawn(_first_line(errors))


def _first_line(stderr: str) -> str:
    line = next((line for line in stderr.splitlines() if line.strip()), "")
    for prefix in ("Mermaid rendering failed: ", "UnknownDiagramError: "):
        line = line.removeprefix(prefix)
    return line[:MAX_REASON_CHARS] or "The drawing process ended."


def _diagram(outputs: Sequence[bytes]) -> Diagram | NotDrawn:
    """Parse and sanitise the output of the drawing processes, which is untrusted."""
    try:
        light, dark = map(_parsed, outputs)
        return Diagram(_data_uri(light), _data_uri(dark), *_size(light))
    except (ElementTree.ParseError, ValueError, OverflowError) as error:
        return NotDrawn(f"The drawing is not valid SVG: {error}"[:MAX_REASON_CHARS])
    except RecursionError:
        return NotDrawn("The drawing is nested too deeply.")


def _parsed(output: bytes) -> ElementTree.Element:
    svg = json.loads(output)
    if not isinstance(svg, str):
        raise ValueError("the process did not write a drawing")
    # Entities are the one way in which parsing XML itself can hurt.
    if "<!" in svg.replace("<!--", ""):
        raise ValueError("it declares a document type")
    return ElementTree.fromstring(svg)


def _size(root: ElementTree.Element) -> tuple[int, int]:
    """Natural size, from the view box: as an image, an SVG of width 100 % has none."""
    _, _, width, height = (float(n) for n in root.get("viewBox", "0 0 300 150").split())
    root.set("width", str(round(width)))
    root.set("height", str(round(height)))
    return round(width), round(height)


def _data_uri(root: ElementTree.Element) -> str:
    _size(root)
    clean(root)
    ElementTree.register_namespace("", SVG[1:-1])
    return "data:image/svg+xml;base64," + base64.b64encode(ElementTree.tostring(root)).decode()


def clean(element: ElementTree.Element) -> None:
    """Take out of an SVG, in place, all that could run or load anything."""
    for name in list(element.attrib):
        if _harmful(name, element.attrib[name]):
            del element.attrib[name]
    for child in list(element):
        if _local(child.tag) in FORBIDDEN:
            element.remove(child)
        else:
            if _local(child.tag) == "style":
                child.text = _without_loads(child.text or "")
            clean(child)


def _harmful(name: str, value: str) -> bool:
    local = _local(name).lower()
    if local.startswith("on"):
        return True
    if local == "href":
        return not value.startswith("#")
    return _without_loads(value) != value


def _without_loads(css: str) -> str:
    """CSS without what fetches: url() of anything but a fragment of the same drawing, @import."""
    lowered = css.lower().replace(" ", "")
    loads = lowered.count("url(") != lowered.count("url(#") + lowered.count('url("#')
    return "" if loads or "@import" in lowered or "javascript:" in lowered else css


def _local(tag: str) -> str:
    return str(tag).rpartition("}")[2]
