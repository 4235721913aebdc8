"""One rule for all look-ups: what they could not read is in `degraded`."""

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any, ParamSpec, TypeVar, cast

from apps.index import unread
from apps.retrieval.repositories import lost_parts, lost_texts, still_current

P = ParamSpec("P")
Answer = TypeVar("Answer")


def marked(look_up: Callable[P, Answer]) -> Callable[P, Answer]:
    """Decorate a look-up whose answer is a dict, or has a field `degraded`."""

    @wraps(look_up)
    def look_up_marked(*args: P.args, **kwargs: P.kwargs) -> Answer:
        with unread.noted() as found:
            answer: Any = look_up(*args, **kwargs)
        is_dict = isinstance(answer, dict)
        known = answer.get("degraded", "") if is_dict else answer.degraded
        lost = (
            lost_parts(list(found.parts.values())),
            lost_texts(still_current(found.texts.values()), "file"),
        )
        sentences = [known, *(text for text in lost if text not in known)]
        degraded = "; ".join(filter(None, sentences))
        if degraded == known:
            return cast(Answer, answer)
        if is_dict:
            return cast(Answer, {**answer, "degraded": degraded})
        return cast(Answer, replace(answer, degraded=degraded))

    return look_up_marked
