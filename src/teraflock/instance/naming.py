"""Generated names for instances that were launched without one."""

from collections.abc import Callable, Container, Set
from typing import Final

_BIRDS: Final = (
    "avocet", "bittern", "bunting", "crane", "curlew", "dipper", "dove", "dunlin", "eider", "egret", "finch", "gannet",
    "godwit", "goose", "grebe", "gull", "harrier", "heron", "hoopoe", "ibis", "jackdaw", "kestrel", "kite", "knot",
    "lapwing", "lark", "linnet", "magpie", "martin", "merlin", "osprey", "ouzel", "owl", "petrel", "pipit", "plover",
    "puffin", "quail", "raven", "robin", "rook", "ruff", "sanderling", "serin", "shrike", "siskin", "skua", "snipe",
    "sparrow", "starling", "stilt", "stork", "swallow", "swan", "swift", "teal", "tern", "thrush", "tit", "turnstone",
    "wagtail", "warbler", "wheatear", "wren",
)  # fmt: skip


def new_name(random_bytes: Callable[[int], bytes], taken: Container[str]) -> str:
    """A bird and four hexadecimal digits, such as `heron-3f2a`."""
    while True:
        drawn = random_bytes(3)
        name = f"{_BIRDS[drawn[0] % len(_BIRDS)]}-{drawn[1]:02x}{drawn[2]:02x}"
        if name not in taken:
            return name


def new_names(random_bytes: Callable[[int], bytes], count: int, taken: Set[str]) -> set[str]:
    """As many different names as `count`, none of them in `taken`."""
    names: set[str] = set()
    while len(names) < count:
        names.add(new_name(random_bytes, names | taken))
    return names


def numbered(name: str, count: int) -> list[str]:
    return [name] if count == 1 else [f"{name}-{number}" for number in range(1, count + 1)]
