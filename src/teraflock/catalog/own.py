"""Read a user's own GPU model from a file with one `key: value` per line, or a JSON object.

Invariant: every card that this module returns has all figures that an estimate needs.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from teraflock.base.errors import BadInput
from teraflock.catalog.model import SM_LANES, Card

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
    """The fields of a file. Rates are dense. Tensor core rates are with fp32 accumulation."""

    name: str
    generation: str
    memory_gb: float
    bandwidth_gbs: float
    sms: int
    fp32_tflops: float | None = None
    """Default: what the SMs compute at `clock_mhz`."""
    clock_mhz: float | None = None
    """Boost clock. Not needed if `fp32_tflops` is given."""
    fp16_tflops: float | None = None
    tf32_tensor_tflops: float | None = None
    fp16_tensor_tflops: float | None = None
    watts: float | None = None
    nvlink_gbs: float = 0.0
    usable_memory_mib: int | None = None
    bf16: bool | None = None


def card_from(text: str) -> Card:
    if len(text) > SIZE_MAX:
        raise BadInput(f"The file is longer than {SIZE_MAX:,} characters")
    pairs = _pairs(text)
    _check_keys(pairs)
    try:
        given = msgspec.convert(pairs, CardFile, strict=False)
    except msgspec.ValidationError as error:
        raise BadInput(f"Invalid GPU model file: {error}", hint=f"Example:\n{EXAMPLE}") from None
    generation = next((each for each in CAPABILITIES if each.casefold() == given.generation.casefold()), None)
    if generation is None:
        raise BadInput(
            f"Unknown NVIDIA generation `{given.generation}`",
            hint="Use one of " + ", ".join(CAPABILITIES),
        )
    _check(given)
    fp32 = given.fp32_tflops
    if fp32 is None:
        if given.clock_mhz is None:
            raise BadInput("The file has neither `fp32_tflops` nor `clock_mhz`", hint=f"Example:\n{EXAMPLE}")
        fp32 = 2 * SM_LANES[generation] * given.sms * given.clock_mhz / 1e6
    return Card(
        id=given.name.strip(),
        name=given.name.strip(),
        family=given.name.strip(),
        rank=1,
        maker="NVIDIA",
        year=YEARS[generation],
        architecture=generation,
        compute_capability=CAPABILITIES[generation],
        memory_gb=given.memory_gb,
        usable_memory_mib=given.usable_memory_mib,
        memory_type="",
        bandwidth_gbs=given.bandwidth_gbs,
        sms=given.sms,
        fp32_tflops=fp32,
        fp16_tflops=given.fp16_tflops,
        tf32_tensor_tflops=given.tf32_tensor_tflops,
        fp16_tensor_tflops=given.fp16_tensor_tflops,
        bf16=given.bf16 if given.bf16 is not None else YEARS[generation] >= BF16_SINCE,
        tdp_watts=given.watts,
        nvlink_gbs=given.nvlink_gbs,
        source="added by `tera gpus add`",
        usable_source="",
    )


def _check_keys(pairs: Mapping[str, object]) -> None:
    fields = {each.name: each.required for each in msgspec.structs.fields(CardFile)}
    for key in pairs:
        if key not in fields:
            raise BadInput(f"Unknown key `{key}` in the file", hint=f"Keys: {', '.join(fields)}")
    missing = [name for name, required in fields.items() if required and name not in pairs]
    if missing:
        raise BadInput(
            f"The file lacks {', '.join(f'`{each}`' for each in missing)}", hint=f"Example:\n{EXAMPLE}"
        )


def _check(given: CardFile) -> None:
    if not given.name.strip() or len(given.name) > 64 or not given.name.isprintable():
        raise BadInput("`name` must have 1 to 64 printable characters")
    for field in msgspec.structs.fields(CardFile):
        value = getattr(given, field.name)
        least = 0.0 if field.name == "nvlink_gbs" else 1e-3
        if isinstance(value, int | float) and not isinstance(value, bool) and not least <= value < 1e9:
            raise BadInput(f"`{field.name}` must be above 0 and below 1e9, not {value:g}")


def _pairs(text: str) -> Mapping[str, object]:
    if text.lstrip().startswith("{"):
        try:
            return msgspec.json.decode(text, type=dict[str, object])
        except msgspec.MsgspecError as error:
            raise BadInput(f"The file is not a JSON object: {error}") from None
    found: dict[str, object] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.partition("#")[0].strip()
        if not words:
            continue
        key, colon, value = (each.strip() for each in words.partition(":"))
        if not colon or not value:
            raise BadInput(f"Line {number} of the file is not `key: value`", hint=f"Example:\n{EXAMPLE}")
        found[key] = value.strip("'\"")
    return found
