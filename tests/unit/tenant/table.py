"""The permissions of each role, written a second time as a readable table. Independent of rules.py."""

from collections.abc import Mapping

TABLE = """
                     owner  member  viewer  billing  operator
instance.read          x      x       x        .        x
instance.write         x      x       .        .        .
instance.enter         x      x       .        .        .
instance.operate       .      .       .        .        x
image.read             x      x       x        .        x
image.write            x      x       .        .        .
network.read           x      x       x        .        x
network.write          x      x       .        .        .
network.peer           x      .       .        .        .
project.read           x      x       x        x        x
project.write          x      .       .        .        x
quota.write            x      .       .        .        x
member.read            x      x       x        .        x
member.write           x      .       .        .        x
key.read               x      x       x        x        x
key.write              x      x       .        .        x
audit.read             x      x       x        .        x
usage.read             x      x       x        x        x
bill.read              x      .       .        x        x
bill.write             .      .       .        .        x
purchase.write         x      .       .        .        .
host.read              .      .       .        .        x
host.write             .      .       .        .        x
organisation.read      .      .       .        .        x
organisation.write     .      .       .        .        x
"""


def _columns() -> Mapping[str, frozenset[str]]:
    head, *lines = (line.split() for line in TABLE.strip().splitlines())
    return {
        name: frozenset(line[0] for line in lines if line[column + 1] == "x")
        for column, name in enumerate(head)
    }


MAY: Mapping[str, frozenset[str]] = _columns()
PERMISSIONS: tuple[str, ...] = tuple(line.split()[0] for line in TABLE.strip().splitlines()[1:])
ROLES = ("owner", "member", "viewer", "billing")
