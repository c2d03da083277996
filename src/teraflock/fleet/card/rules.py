"""Which free cards of a host an instance gets. Pure."""

from collections import defaultdict
from collections.abc import Iterable


def neighbours(free: Iterable[tuple[str, str]], count: int) -> list[str]:
    """Up to `count` slots of the free cards `(slot, near)`: from the smallest group of neighbours that has enough.

    If none has, whole groups come first, the largest before the others, so that few links cross groups. Cards without
    a known neighbour form one group.
    """
    groups: dict[str, list[str]] = defaultdict(list)
    for slot, near in sorted(free):
        groups[near].append(slot)
    enough = [group for group in groups.values() if len(group) >= count]
    if enough:
        return min(enough, key=lambda group: (len(group), group))[:count]
    largest_first = sorted(groups.values(), key=lambda group: (-len(group), group))
    return [slot for group in largest_first for slot in group][:count]
