"""From a provider's name of a GPU to the catalog's. Pure."""

import re
from functools import lru_cache
from typing import Final

from teraflock.base.errors import UnknownName
from teraflock.base.quantities import GIB
from teraflock.catalog.names import find_cards

MEMORY: Final = re.compile(r"(\d+)\s*GB")


@lru_cache(maxsize=1024)
def card(text: str, memory_gb: int = 0) -> tuple[str, int]:
    """The catalog's id of a GPU and its bytes of memory. A GPU that the catalog lacks keeps the provider's name."""
    if not text:
        return "", 0
    name = re.sub(r"^\d+\s*x\s+", "", text.replace("NVIDIA", " ")).partition("(")[0].strip()
    memory = memory_gb or int(found[1]) if (found := MEMORY.search(text)) else memory_gb
    for words in ((f"{name} {memory}GB",) if memory else ()) + (name,):
        try:
            first = find_cards(words)[0]
        except UnknownName:
            continue
        return first.id, first.memory_bytes
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-"), memory * GIB
