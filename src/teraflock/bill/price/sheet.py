"""Reads a YAML document and keeps its line numbers, so that errors can name the line."""

from typing import Any, Final

import yaml

from teraflock.base.errors import BadInput, nearest_names

Node = yaml.Node

BYTES_MAX: Final = 1 << 20  # a book with ten thousand prices has half a MB
WORD_MAX: Final = 40  # characters of user input in messages


class BadBook(BadInput):
    """The price book has a mistake. No part of it was accepted."""

    code = "bad_price_book"
    remedy = "Correct the line that the sentence names."


class Sheet:
    def __init__(self, name: str) -> None:
        """`name` is the name of the document in messages."""
        self.name = name

    def parts(self, text: str) -> list[Node]:
        """The items of the document, which must be a list."""
        if len(text) > BYTES_MAX:
            raise BadBook(f"{self.name} is larger than {BYTES_MAX >> 20} MB")
        try:
            root = yaml.compose(text, Loader=yaml.SafeLoader)
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            line = mark.line + 1 if mark else 1
            raise BadBook(f"{self.name}, line {line}: not valid YAML: {_reason(error)}") from None
        if not isinstance(root, yaml.SequenceNode) or not root.value:
            raise self.bad(
                root, "a price book must be a list of periods", "Start each with `- from: 2026-01-01`"
            )
        return list(root.value)

    def fields(self, node: Node, known: tuple[str, ...]) -> dict[str, Node]:
        """Values by name. Unknown names are refused."""
        fields = {}
        for key, value in self.entries(node):
            word = self.text(key)
            if word not in known:
                near = ", ".join(f"`{each}`" for each in nearest_names(word, known) or known)
                raise self.bad(key, f"unknown name `{word[:WORD_MAX]}`", f"Possible names: {near}")
            fields[word] = value
        return fields

    def entries(self, node: Node) -> list[tuple[Node, Node]]:
        """Names and values. Duplicate names are refused."""
        if not isinstance(node, yaml.MappingNode):
            raise self.bad(node, "expected names with values, such as `V100: 3.06/hour`")
        seen: dict[str, int] = {}
        for key, _ in node.value:
            word = self.text(key)
            if word in seen:
                raise self.bad(key, f"`{word[:WORD_MAX]}` is a duplicate of line {seen[word]}")
            seen[word] = line_of(key)
        return list(node.value)

    def text(self, node: Node) -> str:
        if not isinstance(node, yaml.ScalarNode) or not node.value.strip():
            raise self.bad(node, "expected a word or a number")
        value: str = node.value.strip()
        return value

    def bad(self, node: Node | None, what: str, hint: str = "") -> BadBook:
        return BadBook(f"{self.name}, line {line_of(node)}: {what}", hint=hint)


def is_table(node: Node) -> bool:
    return isinstance(node, yaml.MappingNode)


def line_of(node: Any) -> int:
    return int(node.start_mark.line) + 1 if node is not None else 1


def _reason(error: yaml.YAMLError) -> str:
    return " ".join(str(getattr(error, "problem", None) or error).split())[:120]
