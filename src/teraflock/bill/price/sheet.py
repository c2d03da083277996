"""A YAML document that is read with its lines at hand, so that whatever is wrong in it is named by its line."""

from typing import Any, Final

import yaml

from teraflock.base.errors import BadInput, nearest_names

Node = yaml.Node

BYTES_MAX: Final = 1 << 20  # a book of ten thousand prices has half of that
WORD_MAX: Final = 40  # of what is said back


class BadBook(BadInput):
    """The price book has a mistake. No part of it was accepted."""

    code = "bad_price_book"
    remedy = "Correct the line that the sentence names."


class Sheet:
    def __init__(self, name: str) -> None:
        """`name` is what the document is called in messages."""
        self.name = name

    def parts(self, text: str) -> list[Node]:
        """The document is a list: its parts."""
        if len(text) > BYTES_MAX:
            raise BadBook(f"{self.name} is larger than {BYTES_MAX >> 20} MB")
        try:
            root = yaml.compose(text, Loader=yaml.SafeLoader)
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            line = mark.line + 1 if mark else 1
            raise BadBook(f"{self.name}, line {line}: this is no YAML: {_reason(error)}") from None
        if not isinstance(root, yaml.SequenceNode) or not root.value:
            raise self.bad(root, "a price book is a list of periods", "Begin each with `- from: 2026-01-01`")
        return list(root.value)

    def fields(self, node: Node, known: tuple[str, ...]) -> dict[str, Node]:
        """Values by name; a name that is not known is refused."""
        fields = {}
        for key, value in self.entries(node):
            word = self.text(key)
            if word not in known:
                near = ", ".join(f"`{each}`" for each in nearest_names(word, known) or known)
                raise self.bad(key, f"`{word[:WORD_MAX]}` means nothing here", f"Here may stand {near}")
            fields[word] = value
        return fields

    def entries(self, node: Node) -> list[tuple[Node, Node]]:
        """Names with values, each name once."""
        if not isinstance(node, yaml.MappingNode):
            raise self.bad(node, "names with values are needed here, such as `V100: 3.06/hour`")
        seen: dict[str, int] = {}
        for key, _ in node.value:
            word = self.text(key)
            if word in seen:
                raise self.bad(key, f"`{word[:WORD_MAX]}` stands here twice, before in line {seen[word]}")
            seen[word] = line_of(key)
        return list(node.value)

    def text(self, node: Node) -> str:
        if not isinstance(node, yaml.ScalarNode) or not node.value.strip():
            raise self.bad(node, "a word or a number is needed here")
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
