"""Runs every pattern that it is given on growing inputs: `python -m tests.house.pattern_attacks`.

A process of its own, since a pattern that backtracks can only be stopped with its process. Reads
[{where, text, bytes, flags, engine, uses, limit}] from standard input; writes how many runs
there were. The name of the pattern that is tried stands on standard error before each.
"""

import json
import re
import resource
import sys
from typing import Any

import re2

SIZES = (1 << 8, 1 << 12, 1 << 17)
PUMPS = ["a", "A", "0", " ", "\t", "\n", ".", "-", "_", "/", "+a", "<", "`", "~", "*\t", "#", "["]
PUMPS += ["(", "a.", "a:", "a:1", "://", "a@", "=", '"', "'", "\\", "{", "%", "\u00e9", "<|"]
PUMPS += ["eyJ-", "uri=", "Bearer ", "token=", "model ", "sk-", "a/", "A_"]


# Of processor time, which all attacks together may take; they take seconds.
SECONDS = 300


def main() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    runs = 0
    for job in json.load(sys.stdin):
        print(job["where"], file=sys.stderr, flush=True)
        runs += attack(job)
    print(runs)


def attack(job: dict[str, Any]) -> int:
    compiled = compile_of(job)
    runs = 0
    for pump in PUMPS:
        for size in SIZES:
            length = min(size, job["limit"])
            text = pump * (length // len(pump)) + "\x00"
            subject: Any = text.encode("utf-8", "replace") if job["bytes"] else text
            for use in job["uses"] or ["search"]:
                run(compiled, use, subject)
                runs += 1
    return runs


def compile_of(job: dict[str, Any]) -> Any:
    text = job["text"].encode("latin-1") if job["bytes"] else job["text"]
    return re2.compile(text) if job["engine"] == "re2" else re.compile(text, job["flags"])


def run(compiled: Any, use: str, text: Any) -> None:
    match use:
        case "sub" | "subn":
            compiled.sub(text[:0], text)
        case "finditer" | "findall" | "split":
            list(getattr(compiled, use)(text))
        case "match" | "search" | "fullmatch":
            getattr(compiled, use)(text)
        case _:
            compiled.search(text)


if __name__ == "__main__":
    main()
