"""What the name of an instance type says about its GPUs: the variant of the card, or the part of it.

Catalogs often write `A100` where the type tells which one: `gpu_1x_h100_pcie` has the PCIe card, and Azure's
`Standard_NV4as_v4` an eighth of an MI25. A type never changes the family of the card that the catalog names.
"""

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Final

import msgspec

from teraflock.catalog.cards import cards_by_id, table
from teraflock.catalog.names import RESOLUTIONS_MAX, resolve

_FORM: Final = re.compile(r"(?<![a-z0-9])(pcie|sxm\d?|nvl)(?![a-z])", re.IGNORECASE)


class InstanceType(msgspec.Struct, frozen=True, kw_only=True):
    provider: str
    type: str
    """`*` stands for any characters."""
    gpu: str
    share: float = 1.0
    gpus: int | None = None
    """Set where a catalog has another number."""
    reason: str
    """Where this is known from."""


class TypeGpu(msgspec.Struct, frozen=True):
    name: str
    """The name of the card, more specific than that of the catalog if the type says more."""
    memory_mib: float | None
    share: float = 1.0
    count: int | None = None
    """The number of GPUs, if catalogs have it wrong."""


@lru_cache(maxsize=RESOLUTIONS_MAX)
def gpu_of_type(provider: str, instance_type: str, name: str, memory_mib: float | None) -> TypeGpu:
    """Return the GPU of an instance type whose catalog names it `name`."""
    plain = resolve(name, memory_mib) if name else None
    if plain is None or plain.card is None:
        return TypeGpu(name, memory_mib)
    row = _row_of(provider, instance_type)
    if row and (card := cards_by_id()[row.gpu]).family == plain.card.family:
        if not plain.inferred:
            return TypeGpu(name, memory_mib, row.share, row.gpus)
        return TypeGpu(card.id, memory_mib or card.memory_gb * 1024, row.share, row.gpus)
    if plain.inferred and (form := _FORM.search(instance_type)):
        better = resolve(f"{name} {form[1]}", memory_mib)
        if better and better.card and better.card.family == plain.card.family:
            return TypeGpu(f"{name} {form[1]}", memory_mib)
    return TypeGpu(name, memory_mib)


def _row_of(provider: str, instance_type: str) -> InstanceType | None:
    return next((row for pattern, row in _rows().get(provider, ()) if pattern.fullmatch(instance_type)), None)


@cache
def _rows() -> Mapping[str, list[tuple[re.Pattern[str], InstanceType]]]:
    found: dict[str, list[tuple[re.Pattern[str], InstanceType]]] = {}
    for row in table("types.csv", InstanceType):
        pattern = re.compile(re.escape(row.type).replace(r"\*", ".*"), re.IGNORECASE)
        found.setdefault(row.provider, []).append((pattern, row))
    return found
