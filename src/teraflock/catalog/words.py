"""Parse the words of a GPU name: brands, memory sizes, forms.

Pure; does not know any cards. A name is split into runs of letters and digits, so case, spaces, hyphens and underscores
do not matter: `Tesla V100-SXM2-32GB` equals `tesla_v100 sxm2 32 gb`. The first words name a family, which `names.py`
looks up. The words after them describe a `Variant`.
"""

import re
from collections.abc import Sequence
from typing import Final

import msgspec

_RUN: Final = re.compile(r"[a-z]+|[0-9]+(?:\.[0-9]+)?")

# None of these distinguishes two products: there is only one RTX 4000, with or without Quadro.
_BRANDS: Final = ("nvidia", "tesla", "geforce", "quadro", "radeon", "instinct", "firepro")
_MAKERS: Final = ("amd", "intel", "habana", "qualcomm", "google", "amazon", "aws", "huawei")
_FILLERS: Final = ("gpu", "gpus", "graphics", "card", "tensor", "core", "hgx", "dgx")
SILENT: Final = frozenset(_BRANDS + _MAKERS + _FILLERS)

_FORMS: Final = {
    "sxm": "sxm",
    "pcie": "pcie",
    "nvl": "nvl",
    "oam": "oam",
    "laptop": "laptop",
    "mobile": "laptop",
    "server": "server",
    "se": "server",
    "workstation": "workstation",
    "ws": "workstation",
    "wk": "workstation",
    "maxq": "max-q",
}
_PAIRS: Final = {("pci", "e"): "pcie", ("pci", "express"): "pcie", ("max", "q"): "maxq"}
_MEMORY_UNITS: Final = frozenset({"g", "gb", "gib"})
_MEMORY_TYPES: Final = {"hbm": "e", "gddr": "x"}
_ARCHITECTURES: Final = frozenset(
    {"kepler", "maxwell", "pascal", "volta", "turing", "ampere", "ada", "hopper", "blackwell"}
)
_ENGINES: Final = frozenset({"me", "all", "gfx"})
"""Suffixes of MIG profiles such as `1g.18gb+me`: media and graphics engines, which change neither SMs nor memory."""
_REDUNDANT: Final = frozenset({"nvlink", "generation", "edition", "lovelace", "ultra"})


class Variant(msgspec.Struct):
    """The variant that the words after a family describe. None means not given.

    Not frozen, because `read_variant` sets its fields word by word.
    """

    form: str | None = None
    memory_gb: float | None = None
    memory_type: str | None = None
    architecture: str | None = None
    part: bool = False
    """Whether the name means a MIG partition."""
    profile: str | None = None
    part_memory_gb: float | None = None


def words_of(text: str) -> tuple[str, ...]:
    """Return the significant words: `"NVIDIA Tesla P100-PCIE"` → `("p", "100", "pcie")`."""
    runs = [_without_brand(run) for run in _RUN.findall(text.casefold())]
    return tuple(run for run in runs if run and run not in SILENT)


def key_of(text: str) -> str:
    """Return the significant words as one text. Names with the same key are equal."""
    return "".join(words_of(text))


def _without_brand(run: str) -> str:
    """`teslav` (of `TeslaV100`) → `v`."""
    while run.startswith(_BRANDS):
        run = next(run.removeprefix(brand) for brand in _BRANDS if run.startswith(brand))
    return run


def read_variant(words: Sequence[str]) -> Variant | None:
    """Parse the words after a family. Return None if any word is unknown, so that no word is ignored."""
    variant = Variant()
    ahead = list(reversed(words))
    while ahead:
        word = ahead.pop()
        if ahead and (word, ahead[-1]) in _PAIRS:
            word = _PAIRS[word, ahead.pop()]
        if not (
            _read_number(variant, word, ahead) if word[0].isdigit() else _read_word(variant, word, ahead)
        ):
            return None
    return variant


def _read_word(variant: Variant, word: str, ahead: list[str]) -> bool:
    if word in _FORMS:
        _read_form(variant, _FORMS[word], ahead)
    elif word in _MEMORY_TYPES and ahead and ahead[-1].isdigit():
        variant.memory_type = word + ahead.pop()
        if ahead and ahead[-1] == _MEMORY_TYPES[word]:
            variant.memory_type += ahead.pop()
    elif word in _ARCHITECTURES:
        variant.architecture = word
    elif word == "mig":
        variant.part = True
    else:
        return word in _REDUNDANT
    return True


def _read_form(variant: Variant, form: str, ahead: list[str]) -> None:
    version = form == "sxm" and ahead and len(ahead[-1]) == 1 and ahead[-1].isdigit()
    if version and ahead[-2:-1] not in (
        [each] for each in _MEMORY_UNITS
    ):  # the 1 of `SXM 1g.18gb` is no version
        form += ahead.pop()
    if variant.form != "max-q" or form != "workstation":  # "Max-Q Workstation Edition" is the Max-Q card
        variant.form = form


def _read_number(variant: Variant, word: str, ahead: list[str]) -> bool:
    if len(ahead) >= 3 and (ahead[-1], ahead[-3]) == ("g", "gb") and ahead[-2].isdigit():
        variant.part = True
        variant.profile = f"{word}g.{ahead[-2]}gb"
        del ahead[-3:]
        while ahead and ahead[-1] in _ENGINES:
            ahead.pop()
        return True
    if ahead and ahead[-1] in _MEMORY_UNITS:
        ahead.pop()
    # A number without a unit is memory too, as in our ids (`V100-SXM2-32`).
    if variant.part:
        variant.part_memory_gb = float(word)
    elif variant.memory_gb is None:
        variant.memory_gb = float(word)
    else:
        return False
    return True
