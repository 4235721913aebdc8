"""Searches of many clients at once, over one repository and over several.

    python -m benchmarks.clients FOLDER FOLDER…

A server ingests the folders. Then `wrk` (Debian's package of that name) sends searches for some
seconds: from one client, and from 32, which each send their next search after an answer. That is
done without search processes, and with them (CODEINFO_SEARCH_PROCESSES). Prints one table: searches
a second, and their median. All state is in a temporary folder. Exits 1 on any failure.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import httpx

from benchmarks import product
from benchmarks.search import QUESTIONS

CLIENTS, SECONDS = 32, 12
SCRIPT = """
local bodies, sent = {%s}, 0
request = function()
  sent = sent + 1
  return wrk.format("POST", "/tools/vector-search", {["Content-Type"] = "application/json"},
    bodies[sent %% #bodies + 1])
end
done = function(summary, latency)
  print(string.format("searches %%d seconds %%f median %%f failed %%d", summary.requests,
    summary.duration / 1e6, latency:percentile(50) / 1000, summary.errors.status))
end
"""
PRINTED = re.compile(r"searches (\d+) seconds (\S+) median (\S+) failed (\d+)")


class Rate(NamedTuple):
    a_second: float
    median: float  # milliseconds

    def __str__(self) -> str:
        return f"{self.a_second:.0f}/s, {self.median:.1f} ms"


def rate(client: httpx.Client, script: Path, clients: int) -> Rate:
    """What that many clients get. Raises RuntimeError if a search fails."""
    command = ["wrk", "-t1", f"-c{clients}", f"-d{SECONDS}s", "--timeout", "30s", "-s", str(script)]
    done = subprocess.run(
        [*command, str(client.base_url)], capture_output=True, text=True, check=True
    )
    found = PRINTED.search(done.stdout)
    if found is None or int(found[4]):
        raise RuntimeError(f"wrk: {done.stdout}{done.stderr}")
    return Rate(int(found[1]) / float(found[2]), float(found[3]))


def measured(
    client: httpx.Client, scopes: Sequence[dict[str, Any]], script: Path
) -> Iterator[tuple[Rate, Rate]]:
    """One client and many, for each scope."""
    for scope in scopes:
        bodies = [json.dumps({"query": question, "limit": 10, **scope}) for question in QUESTIONS]
        script.write_text(SCRIPT % ", ".join(f"[==[{body}]==]" for body in bodies))
        rate(client, script, CLIENTS)  # starts the processes, and has all mapped
        yield rate(client, script, 1), rate(client, script, CLIENTS)


def measure(data: Path, folders: Sequence[Path]) -> list[Sequence[object]]:
    scopes = [{"repository": folders[0].name}, {}]
    script = data / "clients.lua"
    os.environ["CODEINFO_SEARCH_PROCESSES"] = "0"
    with product.serving(data, folders) as client:
        for folder in folders:
            product.ingest_over_http(client, folder, folder.name)
        chunks = product.ingested(client)
        without = list(measured(client, scopes, script))
    del os.environ["CODEINFO_SEARCH_PROCESSES"]
    with product.serving(data, folders) as client:
        with_processes = list(measured(client, scopes, script))
    counts = chunks[folders[0].name], sum(chunks.values())
    rows: list[Sequence[object]] = []
    for count, (_, alone), (one, many) in zip(counts, without, with_processes, strict=True):
        times = f"{many.a_second / one.a_second:.2f} ×"
        rows.append([f"{count:,}", one, alone, many, times])
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path)
    folders = [folder.resolve() for folder in parser.parse_args().folders]
    titles = (
        "chunks",
        "one client",
        f"{CLIENTS}, no process",
        f"{CLIENTS}, processes",
        "times one",
    )
    with tempfile.TemporaryDirectory(prefix="codeinfo-clients-") as data:
        try:
            rows = measure(Path(data), folders)
        except (httpx.HTTPError, OSError, RuntimeError, subprocess.SubprocessError) as error:
            print(f"clients benchmark failed: {error}", file=sys.stderr)
            return 1
    for row in (titles, *rows):
        print(" ".join(f"{value!s:>20}" for value in row))
    return 0


if __name__ == "__main__":
    os.umask(0o077)
    sys.exit(main())
