"""What the answers of /mcp cost a model: tokens, as a multiple of the same lines as plain text.

    python -m benchmarks.agents --checkouts DIR [--data DIR] [--questions N]

Each ingested repository is asked N questions of the development set. The names that the answers
give are looked up (FindDefinitions, FindReferences, Grep), and outline and first lines of the best
file are read. The plain text of an answer is, for each row, a line `repo/path:lines symbol` and the
code below it; for an outline it is the path, and for each definition a line with lines, kind and
signature; for lines of a file it is the path, and `12: code`.

Counts are of OpenAI's encoding o200k (npm gpt-tokenizer, installed for the tests by `make test`).
Prints a table for both formats, for the text item and for `structuredContent` each by itself.
Exits 1 if a compact answer costs more than LIMIT times plain text, over all answers of a tool.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from benchmarks import product

LIMIT = 1.2
QUESTIONS = 6
FORMATS = ("full", "compact")
HERE = Path(__file__).parent
NODE_MODULES = HERE.parent / "tests" / "mcp" / "node_modules"
COUNT = """
const { countTokens } = require('gpt-tokenizer/encoding/o200k_base');
const texts = JSON.parse(require('node:fs').readFileSync(0, 'utf8'));
console.log(JSON.stringify(texts.map((text) => countTokens(text))));
"""

JSON = dict[str, Any]


@dataclass(frozen=True)
class Answer:
    """One answer of a tool in both formats: the `result` of tools/call."""

    tool: str
    results: dict[str, JSON]  # format → result

    def texts(self) -> Iterator[str]:
        """The plain text; then for each format the text item, and `structuredContent` as JSON."""
        yield plain(self.results["full"]["structuredContent"])
        for name in FORMATS:
            result = self.results[name]
            yield result["content"][0]["text"]
            yield json.dumps(result["structuredContent"], ensure_ascii=False, separators=(",", ":"))


def plain(output: JSON) -> str:
    """A full output as plain text."""
    if "symbols" in output:
        outline = "\n".join(_outline(output["symbols"]))
        return f"{output['repo']}/{output['relPath']}\n{outline}"
    if "totalLines" in output:
        numbered = "\n".join(line for row in output["results"] for line in _numbered(row))
        return f"{output['repo']}/{output['relPath']}\n{numbered}"
    return "\n".join(map(_row, output["results"]))


def _numbered(row: JSON) -> Iterator[str]:
    lines = enumerate(row["chunk"].split("\n"), row["startLine"])
    return (f"{number}: {line}" for number, line in lines)


def _row(row: JSON) -> str:
    if "size" in row:
        from apps.tools.list_files import described  # noqa: PLC0415 - it needs the settings

        return f"{row['repo']}/{row['relPath']}: {described(row)}"
    place = f"{row['repo']}/{row['relPath']}:{_lines(row)}"
    return f"{place} {row.get('symbol') or ''}\n{row['chunk']}"


def _lines(row: JSON) -> str:
    start, end = row["startLine"], row["endLine"]
    return str(start) if start == end else f"{start}-{end}"


def _outline(symbols: Sequence[JSON], depth: int = 0) -> Iterator[str]:
    for symbol in symbols:
        text = symbol["signature"] or symbol["name"]
        yield f"{'  ' * depth}{_lines(symbol)} {symbol['kind']} {text}"
        yield from _outline(symbol.get("children", []), depth + 1)


def call(client: httpx.Client, tool: str, **arguments: Any) -> Answer:
    results = {}
    for name in FORMATS:
        params = {"name": tool, "arguments": {**arguments, "format": name}}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        accept = {"accept": "application/json, text/event-stream"}
        results[name] = product.answer(client.post("/mcp", json=body, headers=accept))["result"]
    return Answer(tool, results)


def answers(client: httpx.Client, repositories: Sequence[JSON], questions: int) -> Iterator[Answer]:
    ingested = product.ingested(client)
    for repository in repositories:
        name = repository["name"]
        if name not in ingested:
            continue
        rows: list[JSON] = []
        for question in repository["queries"][:questions]:
            found = call(client, "VectorSearch", query=question["query"], repository=name)
            rows += found.results["full"]["structuredContent"]["results"]
            yield found
        symbols = dict.fromkeys(row["symbol"].split(".")[-1] for row in rows if row.get("symbol"))
        for symbol in list(symbols)[:2]:
            yield call(client, "FindDefinitions", name=symbol, repository=name)
            yield call(client, "FindReferences", name=symbol, repository=name)
            yield call(client, "Grep", pattern=symbol, repository=name)
        for row in rows[:1]:
            yield call(client, "FileOutline", repository=name, path=row["relPath"])
            yield call(client, "ReadFile", repository=name, path=row["relPath"], lines="1-200")
        yield call(client, "ListFiles", repository=name)


def token_counts(texts: Sequence[str]) -> list[int]:
    """The number of tokens of each text. Raises CalledProcessError if node or gpt-tokenizer is
    missing."""
    command = ["node", "-e", COUNT]
    counted = subprocess.run(
        command,
        input=json.dumps(texts),
        capture_output=True,
        text=True,
        check=True,
        cwd=NODE_MODULES.parent,
    )
    return list(json.loads(counted.stdout))


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--checkouts", type=Path, required=True)
    parser.add_argument("--data", type=Path, help="a kept index")
    parser.add_argument("--questions", type=int, default=QUESTIONS)
    options = parser.parse_args(arguments)
    repositories = json.loads((HERE / "retrieval_set.json").read_text())["repositories"]
    with ExitStack() as stack:
        data = options.data or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        # Both formats are to have the same rows.
        os.environ["CODEINFO_TOOL_MAX_CHARS"] = "1000000"
        client = stack.enter_context(product.serving(data, [options.checkouts]))
        for repository in [] if options.data else repositories:
            folder = options.checkouts / repository["name"]
            if folder.is_dir():
                product.ingest_over_http(client, folder, repository["name"])
        found = list(answers(client, repositories, options.questions))
    texts = [list(answer.texts()) for answer in found]
    counts = token_counts([text for each in texts for text in each])
    width = 1 + 2 * len(FORMATS)
    sums: dict[str, list[int]] = defaultdict(lambda: [0] * width)
    numbers: dict[str, int] = defaultdict(int)
    for at, answer in enumerate(found):
        numbers[answer.tool] += 1
        for column, count in enumerate(counts[at * width : (at + 1) * width]):
            sums[answer.tool][column] += count
    print("| tool | answers | plain text | full, text | structured | compact, text | structured |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    costly = False
    for tool, (base, *others) in sums.items():
        ratios = [each / base for each in others]
        costly |= max(ratios[-2:]) > LIMIT
        cells = " | ".join(f"{ratio:.2f} ×" for ratio in ratios)
        print(f"| `{tool}` | {numbers[tool]} | {base / numbers[tool]:,.0f} | {cells} |")
    return int(costly)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
