"""Run all scripted providers, to try every page by hand without an account (`make stand-ins`).

It prints the environment variables for codeinfo and serves until it is interrupted. To add a
stand-in, add it and its variables to `main`.
"""

import argparse
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.stand_ins.lmstudio_server import LMStudioStandIn
from tests.stand_ins.openai_server import OpenAIStandIn
from tests.stand_ins.responses_server import ResponsesStandIn, write_login


def main() -> None:
    parser = argparse.ArgumentParser(description="Scripted providers to try codeinfo with.")
    parser.add_argument("--pace", type=float, default=1.0, help="1: waits as written, 0: none")
    pace = parser.parse_args().pace
    with ExitStack() as running:
        home = Path(running.enter_context(TemporaryDirectory(prefix="codex-home-")))
        openai = running.enter_context(OpenAIStandIn(port=9099, pace=pace))
        lmstudio = running.enter_context(LMStudioStandIn(port=9097, pace=pace))
        responses = running.enter_context(ResponsesStandIn(port=9098, pace=pace))
        write_login(home, responses.url)
        environment = {
            "CODEINFO_OPENAI_BASE_URL": openai.url,
            "LMSTUDIO_BASE_URL": lmstudio.url,
            "CODEINFO_CODEX_HOME": home,
        }
        print("Start codeinfo in another terminal with:\n")
        print(*(f"{name}={value} \\" for name, value in environment.items()), sep="\n")
        print("make run\n\nEach model plays the script of its name. Ctrl+C ends it.", flush=True)
        with suppress(KeyboardInterrupt):
            while True:
                time.sleep(3600)


if __name__ == "__main__":
    main()
