"""Notebooks as programs write them and as they do not, and an API."""

import json
from typing import Any

PLOT = {"output_type": "display_data", "data": {"image/png": "QFO3rBAi" * 20_000}, "metadata": {}}
TEXT_OUTPUT = {"output_type": "stream", "name": "stdout", "text": ["hidden_output = 1\n"] * 3}


def code(source: str, *outputs: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    return {
        "cell_type": "code",
        "execution_count": 1,
        "metadata": metadata,
        "outputs": list(outputs),
        "source": source.splitlines(keepends=True),
    }


def prose(source: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "metadata": {}, "source": source.splitlines(keepends=True)}


def book(*cells: dict[str, Any], language: str = "python", **kernel: Any) -> dict[str, Any]:
    metadata = {"kernelspec": {"language": language, "name": "a"}, **kernel}
    return {"cells": list(cells), "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


CHURN = book(
    prose("# Churn model\nHow we estimate the probability that a customer leaves.\n"),
    code(
        "%matplotlib inline\n!pip install pandas\nimport pandas as pd\n"
        "files = !ls\n\ndef churn_probability(frame):\n    %time\n    return frame.mean()\n",
        PLOT,
        TEXT_OUTPUT,
    ),
    prose("## Classes\n\n```\n# no heading\n```\n"),
    code(
        "class ChurnModel:\n    def fit_rows(self, rows):\n        return churn_probability(rows)\n"
    ),
    code("%%bash\nfor f in *; do echo $f; done\n"),
    {"cell_type": "raw", "metadata": {}, "source": []},
    code("ChurnModel?\n", TEXT_OUTPUT),
)
FILES: dict[str, str | bytes] = {
    "churn.ipynb": json.dumps(CHURN, indent=1),
    "packed.ipynb": json.dumps(
        book(
            {"cell_type": "markdown", "source": "# Packed\n\nAll on one line."},
            {
                "cell_type": "code",
                "source": "x = 1\n\ndef packed_total(rows):\n    return sum(rows)",
            },
        )
    ),
    "strings.ipynb": json.dumps(
        book(
            {"cell_type": "code", "source": "import os\n\ndef in_a_string():\n    return 1\n"},
            {"cell_type": "code", "source": "in_a_string()"},
        ),
        indent=2,
    ),
    "stats.ipynb": json.dumps(
        book(code("fit <- function(x) {\n  x + 1\n}\n"), language="R"), indent=1
    ),
    "unfinished.ipynb": json.dumps(
        book(
            code("def before_the_error():\n    pass\n"),
            code("def in_the_error():\n    return [(\n"),
            code("def after_the_error():\n    pass\n"),
            code("%%sql\nCREATE TABLE cell_table (id int);\n"),
        ),
        indent=1,
    ),
    "old.ipynb": json.dumps(
        {
            "metadata": {"name": "old"},
            "nbformat": 3,
            "worksheets": [
                {
                    "cells": [
                        {"cell_type": "heading", "level": 2, "source": ["Old heading"]},
                        {"cell_type": "code", "input": ["def from_worksheet():\n", "    pass"]},
                    ]
                }
            ],
        },
        indent=1,
    ),
    "broken.ipynb": '{\n "cells": [\n  {"cell_type": "code", "source": ["lost_never = 1"]\n',
    "helper.py": "from churn import churn_probability\n",
}

# Its parser is killed after four seconds.
DEEP = {"deep.ipynb": '{"cells": [{"source": ["deep_marker"], "outputs": ' + "[" * 100_000}


API = {
    "openapi": "3.1.0",
    "info": {"title": "Pets"},
    "paths": {
        "/pets": {"get": {"summary": "List"}, "post": {"summary": "Add"}},
        "/pets/{id}": {"parameters": [], "delete": {"summary": "Remove"}},
    },
    "components": {"schemas": {"Pet": {"type": "object"}}},
}


def written(notebook: dict[str, Any]) -> str:
    """A notebook as programs write it."""
    return json.dumps(notebook, indent=1)


def line_of(path: str, text: str) -> int:
    """The line of the file that has a text, as JSON writes it."""
    lines = str(FILES[path]).split("\n")
    return next(number for number, line in enumerate(lines, 1) if json.dumps(text)[1:-1] in line)
