"""Members of lists and mappings, and the bindings that reach a place."""

from apps.code.callgraph.facts import Binding, Item
from apps.code.callgraph.values import EXTERNAL_VALUES, Value, Values, only
from apps.code.values import words

# Methods of lists and mappings in several languages, by what they return.
GIVES_ELEMENT = words(
    "get pop popleft setdefault at find findLast shift first last peek poll remove next front "
    "back unwrap expect orElse orElseThrow getFirst getLast"
)
GIVES_CONTAINER = words(
    "values copy filter slice reverse concat sort iter into_iter iter_mut stream iterator "
    "clone cloned as_ref as_mut"
)
# Methods that call a function with each element.
GIVES_EACH = words("forEach map some every flatMap findIndex for_each")


def container_member(value: Value, name: str) -> Values:
    if name in GIVES_EACH:
        return only(Value("each", receiver=value))
    if name in GIVES_ELEMENT and value.receiver:
        return only(Value("method", receiver=value.receiver))
    if name in GIVES_CONTAINER:
        return only(Value("method", receiver=value))
    return EXTERNAL_VALUES


def reaching(items: list[Item], row: int, indent: int) -> list[Item]:
    """The items that may have their name at a place in the same scope: those before it, back to the
    last one that is not in a deeper block."""
    earlier = [item for item in items if item.row <= row] or items
    reached: list[Item] = []
    for item in reversed(earlier):
        reached.append(item)
        if isinstance(item, Binding) and item.indent <= indent:
            break
    return reached
