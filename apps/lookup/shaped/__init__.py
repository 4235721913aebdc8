"""The answer to a question by its shape, from the symbols and the call graph (docs/questions.md).

`answer` chooses what answers: `of_names` a question about a name, `of_files` one about a file, a
route, an entry point or a stack trace. They fill a `draft`."""

from apps.lookup.shaped.answer import ShapedAnswer, answer_by_shape

__all__ = ["ShapedAnswer", "answer_by_shape"]
