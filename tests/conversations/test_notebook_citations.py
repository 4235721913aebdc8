"""Citations of lines in notebooks."""

from apps.conversations.answers.citations import Citations
from apps.conversations.answers.passages import passages_of

ROW = {
    "repo": "books",
    "relPath": "churn.ipynb",
    "startLine": 39,
    "endLine": 41,
    "cell": 2,
    "cellLine": 6,
    "chunk": "def churn(frame):\n    %time\n    return frame",
}


def test_a_citation_names_the_cell_and_its_lines() -> None:
    citations = Citations()
    citations.learn(passages_of({"results": [ROW]}))
    citation = citations.cite("books/churn.ipynb", 40, 41)
    assert citation is not None
    assert citation.lines == "cell 2, lines 7–8"
    assert citation.label == "Source 1: churn.ipynb cell 2, lines 7 to 8"
    assert citation.url == "/code/books/churn.ipynb?lines=40-41&cell=2"
    assert citation.text == "    %time\n    return frame"
