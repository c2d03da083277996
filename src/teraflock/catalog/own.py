"""Read a user's own GPU model from a file with one `key: value` per line, or a JSON object.

Invariant: every card that this module returns has all figures that an estimate needs.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from teraflock.base.errors import BadInput
from teraflock.catalog.cards import all_cards
from teraflock.catalog.model import Card, sm_lanes
from teraflock.catalog.words import key_of

CAPABILITIES: Final = {
    "Blackwell": "12.0", "Hopper": "9.0", "Ada": "8.9", "Ampere": "8.6", "Turing": "7.5", "Volta": "7.0",
    "Pascal": "6.1", "Maxwell": "5.2", "Kepler": "3.5",
}  # fmt: skip
YEARS: Final = {
    "Blackwell": 2025, "Hopper": 2022, "Ada": 2022, "Ampere": 2020, "Turing": 2018, "Volta": 2017, "Pascal": 2016,
    "Maxwell": 2014, "Kepler": 2012,
}  # fmt: skip
CHIPS: Final = {
    "Pascal": ("GP100", "6.0", 0.5),
    "Ampere": ("GA100", "8.0", 6.0),
    "Blackwell": ("GB100", "10.0", 6.0),
}
"""The chip for data centers that differs from the rest of its generation, its capability, and the rate in 16 bits
relative to fp32 above which a card has this chip."""
MAY_LACK: Final = frozenset({"fp16_tflops", "tf32_tensor_tflops", "fp16_tensor_tflops", "nvlink_gbs"})
"""Figures that are 0 if the card lacks the feature."""
BOOLEANS: Final = {"yes": "true", "on": "true", "no": "false", "off": "false"}
"""YAML's other words."""
BF16_SINCE: Final = 2020
SIZE_MAX: Final = 65_536
CLOCK_MHZ_MIN: Final = 100
CLOCK_MHZ_MAX: Final = 10_000
RESERVED: Final = frozenset({"", "all"})
"""Names, as `--gpu` compares them, that mean no single GPU model."""
EXAMPLE: Final = "name: MyCard\ngeneration: Ada\nmemory_gb: 24\nbandwidth_gbs: 600\nsms: 60\nfp32_tflops: 40"


class CardFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The fields of a file. Rates are dense. Tensor core rates are with fp32 accumulation."""

    name: str
    generation: str
    """May name the chip as well: `Ampere GA100`."""
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
    memory_type: str = ""
    bf16: bool | None = None


def card_from(text: str) -> Card:
    if len(text) > SIZE_MAX:
        raise BadInput(f"The file is longer than {SIZE_MAX:,} characters")
    pairs = _pairs(text)
    _check_keys(pairs)
    given = msgspec.convert(pairs, CardFile, strict=False)
    _check(given)
    architecture, capability = _architecture(given)
    generation = architecture.split()[0]
    fp32_tflops = _fp32_tflops(given, architecture)
    _check_clock(given, architecture, fp32_tflops)
    return Card(
        id=given.name.strip(),
        name=given.name.strip(),
        family=given.name.strip(),
        rank=1,
        maker="NVIDIA",
        year=YEARS[generation],
        architecture=architecture,
        compute_capability=capability,
        memory_gb=given.memory_gb,
        usable_memory_mib=given.usable_memory_mib,
        memory_type=given.memory_type,
        bandwidth_gbs=given.bandwidth_gbs,
        sms=given.sms,
        fp32_tflops=fp32_tflops,
        fp16_tflops=given.fp16_tflops,
        tf32_tensor_tflops=given.tf32_tensor_tflops,
        fp16_tensor_tflops=given.fp16_tensor_tflops,
        bf16=given.bf16 if given.bf16 is not None else YEARS[generation] >= BF16_SINCE,
        tdp_watts=given.watts,
        nvlink_gbs=given.nvlink_gbs,
        source="added by `tera gpus add`",
        usable_source="",
    )


def _architecture(given: CardFile) -> tuple[str, str]:
    """The architecture as the catalog writes it, and its compute capability."""
    known = {each.architecture: each.compute_capability for each in all_cards() if each.cuda} | CAPABILITIES
    named = next((each for each in known if each.casefold() == given.generation.casefold()), None)
    if named is None:
        raise BadInput(
            f"Unknown NVIDIA generation `{given.generation}`",
            hint="Use one of " + ", ".join(CAPABILITIES) + ", or with the chip, such as `Ampere GA100`",
        )
    if named in CHIPS:
        chip, capability, least = CHIPS[named]
        half = max(given.fp16_tensor_tflops or 0.0, given.fp16_tflops or 0.0)
        if half >= least * _fp32_tflops(given, named):
            return f"{named} {chip}", capability
    return named, known[named]


def _fp32_tflops(given: CardFile, architecture: str) -> float:
    if given.fp32_tflops is not None:
        return given.fp32_tflops
    if given.clock_mhz is None:
        raise BadInput("The file has neither `fp32_tflops` nor `clock_mhz`", hint=f"Example:\n{EXAMPLE}")
    return 2 * sm_lanes(architecture) * given.sms * given.clock_mhz / 1e6


def _check_keys(pairs: Mapping[str, object]) -> None:
    fields = {each.name: each for each in msgspec.structs.fields(CardFile)}
    for key, value in pairs.items():
        if key not in fields:
            raise BadInput(f"Unknown key `{key}` in the file", hint=f"Keys: {', '.join(fields)}")
        kind = fields[key].type
        try:
            msgspec.convert(value, kind, strict=False)
        except msgspec.ValidationError:
            needed = {str: "text", int: "a whole number", bool | None: "true or false"}.get(kind, "a number")
            raise BadInput(f"`{key}` must be {needed}, not `{value}`", hint=f"Example:\n{EXAMPLE}") from None
    missing = [name for name, each in fields.items() if each.required and name not in pairs]
    if missing:
        raise BadInput(
            f"The file lacks {', '.join(f'`{each}`' for each in missing)}", hint=f"Example:\n{EXAMPLE}"
        )


def _check(given: CardFile) -> None:
    if not given.name.strip() or len(given.name) > 64 or not given.name.isprintable():
        raise BadInput("`name` must have 1 to 64 printable characters")
    if key_of(given.name) in RESERVED:
        raise BadInput(
            f"`name` cannot be `{given.name}`",
            hint="Besides a brand, it needs a letter from a to z or a digit",
        )
    for field in msgspec.structs.fields(CardFile):
        value = getattr(given, field.name)
        lacks = field.name in MAY_LACK and value == 0
        if (
            isinstance(value, int | float)
            and not isinstance(value, bool)
            and not (lacks or 1e-3 <= value < 1e9)
        ):
            raise BadInput(f"`{field.name}` must be above 0 and below 1e9, not {value:g}")
    if given.usable_memory_mib and given.usable_memory_mib > 1024 * given.memory_gb:
        raise BadInput(
            f"`usable_memory_mib` is more than the memory of {given.memory_gb:g} GB: {given.usable_memory_mib}"
        )


def _check_clock(given: CardFile, architecture: str, tflops: float) -> None:
    """The SMs and the fp32 rate give the clock, which shows a mistake in either."""
    clock_mhz = tflops * 1e6 / (2 * sm_lanes(architecture) * given.sms)
    if not CLOCK_MHZ_MIN <= clock_mhz <= CLOCK_MHZ_MAX:
        raise BadInput(
            f"{given.sms} SMs of {architecture} have {tflops:g} TFLOPS only at {clock_mhz:,.0f} MHz",
            hint="Check `sms` and `fp32_tflops`",
        )


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
        found[key] = BOOLEANS.get(value.lower(), value).strip("'\"")
    return found
