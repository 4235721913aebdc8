"""The history that is sent: complete turns, paired calls and results, within the limit."""

from hypothesis import given
from hypothesis import strategies as st

from apps.agents.history import MIN_RESULT_CHARS, fit, tidy, tool_message
from apps.agents.messages import Message, ToolCall, ToolResult
from apps.agents.quoting import CLOSING

SYSTEM = Message("system", "Be brief.")


def turn(number: int, size: int = 10) -> list[Message]:
    return [Message("user", f"q{number} " * size), Message("assistant", f"a{number} " * size)]


def searched(id: str, size: int = 10) -> list[Message]:
    call = ToolCall(id, "Read", {"path": "x"})
    return [Message("assistant", "", (call,)), tool_message(ToolResult(call, "y" * size))]


def test_a_short_history_is_sent_unchanged() -> None:
    messages = [SYSTEM, *turn(1), *turn(2), Message("user", "now?")]
    assert fit(messages, 10_000) == messages


def test_the_oldest_turns_are_dropped_first_and_completely() -> None:
    messages = [SYSTEM, *turn(1), *turn(2), *turn(3), Message("user", "now?")]
    fitted = fit(messages, 120)
    assert fitted == [SYSTEM, *turn(3), Message("user", "now?")]


def test_the_last_turn_stays_even_if_it_is_too_long() -> None:
    last = Message("user", "now? " * 500)
    assert fit([SYSTEM, *turn(1), last], 100) == [SYSTEM, last]


def test_a_too_long_result_is_cut_with_a_note() -> None:
    messages = [Message("user", "now?"), *searched("a", 9_000), *searched("b", 300)]
    fitted = fit(messages, 5_000)
    assert sum(len(message.text) for message in fitted) < 5_200
    assert "characters left out for want of room" in fitted[2].text
    assert fitted[2].text.endswith(CLOSING)
    assert fitted[4] == messages[4], "a result that fits is not cut"


def test_a_result_is_never_cut_to_nothing() -> None:
    fitted = fit([Message("user", "now? " * 900), *searched("a", 9_000)], 1_000)
    assert MIN_RESULT_CHARS <= len(fitted[2].text) < MIN_RESULT_CHARS + 200


def test_the_history_of_a_stopped_turn_is_repaired() -> None:
    unanswered = Message("assistant", "", (ToolCall("a", "Read"),))
    orphan = searched("b")[1]
    messages = [Message("user", "one"), unanswered, Message("user", "two"), orphan, *turn(3)]
    assert [(m.role, m.text.split()[0]) for m in tidy(messages)] == [
        ("user", "one"),
        ("assistant", "a3"),
    ]
    assert "two" in tidy(messages)[0].text, "no message of the user is lost"


def test_calls_of_two_turns_with_the_same_id_keep_their_results() -> None:
    first, second = searched("same", 3), searched("same", 5)
    messages = [Message("user", "one"), *first, Message("user", "two"), second[0]]
    assert tidy(messages)[1:3] == first
    assert len(tidy(messages)) == 4


def test_a_result_without_text_is_quoted() -> None:
    assistant, tool_reply = searched("a")
    bare = Message("tool", tool_result=tool_reply.tool_result)
    assert tidy([Message("user", "?"), assistant, bare])[-1].text == tool_reply.text


KINDS = st.sampled_from(["user", "assistant", "search", "orphan", "unanswered", "system"])


@given(st.lists(KINDS, max_size=12), st.integers(1, 2_000))
def test_sent_messages_are_paired_for_any_stored_history(kinds: list[str], room: int) -> None:
    messages: list[Message] = []
    for n, kind in enumerate(kinds):
        pair = searched(f"c{n % 3}", 40)
        made = {"search": pair, "orphan": pair[1:], "unanswered": pair[:1]}
        messages += made.get(kind) or [Message(kind, f"{kind} {n}")]  # type: ignore[arg-type]
    sent = fit(messages, room)
    open_calls: list[str] = []
    for before, message in zip([None, *sent], sent, strict=False):
        if message.role == "tool":
            assert message.tool_result is not None
            assert message.tool_result.call.id == open_calls.pop(0)
            continue
        assert open_calls == []
        open_calls = [call.id for call in message.tool_calls]
        assert not (before and before.role == message.role == "user")
    assert open_calls == []
