"""Replace references in parsed Markdown by citation tokens: a number, or a name and a number."""

import re

from markdown_it.token import Token

from apps.conversations.answers.citations import Citation, Citations
from apps.lookup.citations.references import (
    LINES_IN_WORDS,
    MORE_LINES,
    WHOLE_REFERENCE,
    references,
    span_of,
)


def number(tokens: list[Token], citations: Citations) -> None:
    """Replace the references in inline tokens by citation tokens."""
    for token in tokens:
        if token.type == "inline" and token.children:
            token.children = tidied(_numbered(token.children, citations))


def _numbered(children: list[Token], citations: Citations) -> list[Token]:
    numbered: list[Token] = []
    in_link = 0
    for child in children:
        in_link += {"link_open": 1, "link_close": -1}.get(child.type, 0)
        if child.type == "code_inline" and not in_link:
            numbered += _code(child, citations)
        elif child.type == "text" and not in_link:
            numbered += _text(child.content, numbered, citations)
        else:
            numbered.append(child)
    return numbered


def _code(token: Token, citations: Citations) -> list[Token]:
    """One citation, or several: `a.py:3-7, 12`."""
    text = token.content.strip()
    match = WHOLE_REFERENCE.match(text)
    if match is None:
        return [token]
    cited: list[Token] = []
    for span in (match, *MORE_LINES.finditer(match["more"])):
        citation = _cite(citations, match["path"], span)
        plain = text[: match.start("more")] if span is match else span[0][1:].strip()
        cited += [_cite_token(citation) if citation else _text_token(plain), _text_token(", ")]
    is_cited = any(piece.type == "citation" for piece in cited)
    return [*cited[:-1], _text_token(match["mark"])] if is_cited else [token]


def _cite(citations: Citations, path: str, span: re.Match[str]) -> Citation | None:
    return citations.cite(path.replace("\\", "/"), *span_of(span))


def _text(text: str, before: list[Token], citations: Citations) -> list[Token]:
    """before: what stands before the text. A path there, in code or in bold, becomes a citation if
    the text begins with its lines."""
    pieces: list[Token] = []
    done = 0
    lines = LINES_IN_WORDS.match(text)
    place, path = _last_path(before) if lines else (None, "")
    if lines and place is not None and (cited := _cite(citations, path, lines)):
        before[place] = _cite_token(cited)
        done = lines.end()
    for reference in references(text, addresses=True):
        citation = citations.cite(reference.path, reference.first, reference.last)
        if citation:
            pieces += [_text_token(text[done : reference.begin]), _cite_token(citation)]
            done = reference.end
    return [*pieces, _text_token(text[done:])]


def _last_path(tokens: list[Token]) -> tuple[int | None, str]:
    """The place and the text of what tokens end with, if it is code, or all that is bold."""
    place = len(tokens) - 1
    while place >= 0 and tokens[place].type == "strong_close":
        place -= 1
    is_bold = 0 < place < len(tokens) - 1 and tokens[place - 1].type == "strong_open"
    if place < 0 or not (tokens[place].type == "code_inline" or is_bold):
        return None, ""
    return place, tokens[place].content.strip()


def _text_token(text: str) -> Token:
    return Token("text", "", 0, content=text)


def _cite_token(citation: Citation) -> Token:
    return Token("citation", "", 0, meta={"citation": citation, "named": True})


# A reference at the end of a clause is a source; after these words it is the subject.
NAMED_AFTER = frozenset(
    ["in", "at", "from", "of", "see", "by", "to", "via", "with", "on", "within", "inside", "file"]
    + ["and", "or", "the"]
)


def tidied(children: list[Token]) -> list[Token]:
    """Choose chip or name for each citation, and remove brackets around a chip."""
    children = [c for c in children if c.type != "text" or c.content]
    for index, token in enumerate(children):
        if token.type != "citation":
            continue
        before = children[index - 1] if index else None
        after = children[index + 1] if index + 1 < len(children) else None
        earlier = children[index - 2] if index >= 2 else None
        if _lists(earlier, before):
            token.meta["named"] = earlier.meta["named"]  # type: ignore[union-attr]
        else:
            token.meta["named"] = not _bracketed(before, after) and not _supports(before, after)
        if not token.meta["named"] and before is not None and before.type == "text":
            # A chip never starts a line.
            before.content = before.content.rstrip() + ("\u00a0" if before.content.strip() else "")
    return children


def _lists(earlier: Token | None, between: Token | None) -> bool:
    """Return True if a citation continues a list: `a`, `b` and `c`."""
    if earlier is None or between is None or (earlier.type, between.type) != ("citation", "text"):
        return False
    return between.content.strip(" ,;") in ("", "and", "or", "&")


def _bracketed(before: Token | None, after: Token | None) -> bool:
    """Remove brackets that contain only the citation. Returns True if there were any."""
    if before is None or after is None or (before.type, after.type) != ("text", "text"):
        return False
    opening, closing = before.content[-1:], after.content[:1]
    if opening + closing not in ("()", "[]"):
        return False
    before.content, after.content = before.content[:-1], after.content[1:]
    return True


def _supports(before: Token | None, after: Token | None) -> bool:
    """Return True if a citation ends a clause, so that its number is enough."""
    if before is None:
        return False
    if before.type == "text":
        words = before.content.split()
        if not words or words[-1].lower() in NAMED_AFTER or words[-1].endswith((":", "—", "-")):
            return False
    elif before.type == "citation":
        return not before.meta["named"]
    return after is None or (after.type == "text" and after.content.lstrip()[:1] in ("", *".;!?)"))
