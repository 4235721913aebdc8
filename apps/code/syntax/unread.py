"""How much of a file its grammar could not read."""

from tree_sitter import Node


def unread_percent(root: Node) -> int:
    """The share of a file that is in errors of its syntax tree, in percent. What an error contains
    whole, such as a call, counts as read."""
    if not root.has_error:
        return 0
    unread, nodes = 0, [root]
    while nodes:
        node = nodes.pop()
        if node.is_error:
            unread += _size(node) - sum(_size(child) for child in node.children if child.children)
        nodes += [child for child in node.children if child.has_error]
    return 100 * unread // max(1, _size(root))


def _size(node: Node) -> int:
    return node.end_byte - node.start_byte
