"""From an empty database to the first cited answer: clicks, and seconds, in a browser.

    python -m benchmarks.first_answer FOLDER… [--rounds N]

Each FOLDER is a git repository. For each round, a server with an empty data folder starts; its base
is the folder around FOLDER. Chromium opens the chat page, clicks the repository, and then the first
question. No language model is connected, and nothing is typed: the seconds are those of codeinfo
and the browser. Exits 1 if the first citation does not open beside its answer.
"""

import argparse
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from statistics import median

from playwright.sync_api import Browser, ViewportSize, expect, sync_playwright

from benchmarks.product import serving

CHROMIUM = "/usr/bin/chromium-headless-shell"
WINDOW: ViewportSize = {"width": 1440, "height": 900}
MILLISECONDS = 300_000
# Steps of a round, each with its clicks.
STEPS = {
    "the page lists the repositories": 0,
    "ingested, and four questions": 1,
    "answered, and the first citation is open": 1,
}


def seconds_of(browser: Browser, folder: Path) -> list[float]:
    """Seconds of each step of one round."""
    with tempfile.TemporaryDirectory() as data, serving(Path(data), [folder.parent]) as client:
        page = browser.new_context(base_url=str(client.base_url), viewport=WINDOW).new_page()
        row = page.locator(f'button[value="{folder}"]')
        questions = page.locator("#chat-run [data-example]")
        times = [time.monotonic()]
        page.goto("/chat")
        expect(row).to_be_visible()
        times.append(time.monotonic())
        row.click()
        expect(questions).to_have_count(4)
        times.append(time.monotonic())
        questions.first.click()
        expect(page.locator("#turns .prose .cite").first).to_be_visible()
        expect(page.locator("#source .line.is-cited").first).to_be_visible()
        times.append(time.monotonic())
        page.context.close()
        return [end - start for start, end in pairwise(times)]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    folders = [folder.resolve() for folder in options.folders]
    expect.set_options(timeout=MILLISECONDS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        names = " | ".join(folder.name for folder in folders)
        print(f"| step | clicks | {names} |\n| --- | --- | {' | '.join('---' for _ in folders)} |")
        rounds = {
            folder: [seconds_of(browser, folder) for _ in range(options.rounds)]
            for folder in folders
        }
        browser.close()
    for number, (step, clicks) in enumerate(STEPS.items()):
        cells = [f"{median(spent[number] for spent in rounds[f]):.1f} s" for f in folders]
        print(f"| {step} | {clicks} | {' | '.join(cells)} |")
    totals = [f"{median(map(sum, rounds[folder])):.1f} s" for folder in folders]
    print(f"| in all | {sum(STEPS.values())} | {' | '.join(totals)} |")


if __name__ == "__main__":
    try:
        main()
    except AssertionError as error:
        sys.exit(str(error))
