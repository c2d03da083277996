"""A card that nobody knows, from a file that its owner wrote: `key: value`, one to a line, or a JSON object.

What holds: a card that leaves here has everything that an estimate needs.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from teraflock.base.errors import BadInput
from teraflock.catalog.model import Card

CAPABILITIES: Final = {
    "Blackwell": "12.0", "Hopper": "9.0", "Ada": "8.9", "Ampere": "8.6", "Turing": "7.5", "Volta": "7.0",
    "Pascal": "6.1", "Maxwell": "5.2", "Kepler": "3.5",
}  # fmt: skip
YEARS: Final = {
    "Blackwell": 2025, "Hopper": 2022, "Ada": 2022, "Ampere": 2020, "Turing": 2018, "Volta": 2017, "Pascal": 2016,
    "Maxwell": 2014, "Kepler": 2012,
}  # fmt: skip
BF16_SINCE: Final = 2020
SIZE_MAX: Final = 65_536
EXAMPLE: Final = "name: MyCard\ngeneration: Ada\nmemory_gb: 24\nbandwidth_gbs: 600\nsms: 60\nfp32_tflops: 40"


class CardFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a file may say. Rates are dense, and those of tensor cores accumulate in fp32."""

    name: str
    generation: str
    memory_gb: float
    bandwidth_gbs: float
    sms: int
    fp32_tflops: float
    fp16_tflops: float | None = None
    tf32_tensor_tflops: float | None = None
    fp16_tensor_tflops: float | None = None
    watts: float | None = None
    nvlink_gbs: float = 0.0
    usable_memory_mib: int | None = None
    bf16: bool | None = None


def card_from(text: str) -> Card:
    if len(text) > SIZE_MAX:
        raise BadInput("A card is described in a few lines, and this file has far more")
    try:
        told = msgspec.convert(_pairs(text), CardFile, strict=False)
    except msgspec.ValidationError as error:
        raise BadInput(f"The card cannot be read: {error}", hint=f"For instance:\n{EXAMPLE}") from None
    generation = next((each for each in CAPABILITIES if each.casefold() == told.generation.casefold()), None)
    if generation is None:
        raise BadInput(
            f"Unknown NVIDIA generation `{told.generation}`",
            hint="One of " + ", ".join(CAPABILITIES),
        )
    _check(told)
    return Card(
        id=told.name.strip(),
        name=told.name.strip(),
        family=told.name.strip(),
        rank=1,
        maker="NVIDIA",
        year=YEARS[generation],
        architecture=generation,
        compute_capability=CAPABILITIES[generation],
        memory_gb=told.memory_gb,
        usable_memory_mib=told.usable_memory_mib,
        memory_type="",
        bandwidth_gbs=told.bandwidth_gbs,
        sms=told.sms,
        fp32_tflops=told.fp32_tflops,
        fp16_tflops=told.fp16_tflops,
        tf32_tensor_tflops=told.tf32_tensor_tflops,
        fp16_tensor_tflops=told.fp16_tensor_tflops,
        bf16=told.bf16 if told.bf16 is not None else YEARS[generation] >= BF16_SINCE,
        tdp_watts=told.watts,
        nvlink_gbs=told.nvlink_gbs,
        source="added by `tera gpus add`",
        usable_source="",
    )


def _check(told: CardFile) -> None:
    if not told.name.strip() or len(told.name) > 64 or not told.name.isprintable():
        raise BadInput("A card has a name of 1 to 64 characters")
    for field in msgspec.structs.fields(CardFile):
        value = getattr(told, field.name)
        least = 0.0 if field.name == "nvlink_gbs" else 1e-3
        if isinstance(value, int | float) and not isinstance(value, bool) and not least <= value < 1e9:
            raise BadInput(f"`{field.name}` is a number above 0, not {value:g}")


def _pairs(text: str) -> Mapping[str, object]:
    if text.lstrip().startswith("{"):
        try:
            return msgspec.json.decode(text, type=dict[str, object])
        except msgspec.MsgspecError as error:
            raise BadInput(f"The card is no JSON object: {error}") from None
    found: dict[str, object] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.partition("#")[0].strip()
        if not words:
            continue
        key, colon, value = (each.strip() for each in words.partition(":"))
        if not colon or not value:
            raise BadInput(f"Line {number} of the card is not `key: value`", hint=f"For instance:\n{EXAMPLE}")
        found[key] = value.strip("'\"")
    return found
