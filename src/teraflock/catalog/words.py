"""Reading the words of a GPU's name: which say nothing, and which say how much memory or what form.

Pure text, no table of cards. A name is cut into runs of letters and of digits, so that case, spaces,
hyphens and underscores never matter: `Tesla V100-SXM2-32GB` and `tesla_v100 sxm2 32 gb` read alike.
The words at its front name a family (`names.py` finds which); the words behind them are a `Wish`.
"""

import re
from collections.abc import Sequence
from typing import Final

import msgspec

_RUN: Final = re.compile(r"[a-z]+|[0-9]+(?:\.[0-9]+)?")

# None of these ever tells two products apart: there is one RTX 4000, whether or not someone writes Quadro.
_BRANDS: Final = ("nvidia", "tesla", "geforce", "quadro", "radeon", "instinct", "firepro")
_MAKERS: Final = ("amd", "intel", "habana", "qualcomm", "google", "amazon", "aws")
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
_SAYS_NOTHING_MORE: Final = frozenset({"nvlink", "generation", "edition", "lovelace", "ultra"})


class Wish(msgspec.Struct):
    """What the words behind a family's name ask of the variant. None: nothing was said.

    Not frozen: it is filled word by word, and leaves `read_wish` only when it is whole.
    """

    form: str | None = None
    memory_gb: float | None = None
    memory_type: str | None = None
    architecture: str | None = None
    part: bool = False
    """A part of a card is meant (MIG)."""
    profile: str | None = None
    part_memory_gb: float | None = None


def words_of(text: str) -> tuple[str, ...]:
    """The words that say something: `"NVIDIA Tesla P100-PCIE"` → `("p", "100", "pcie")`."""
    runs = [_without_brand(run) for run in _RUN.findall(text.casefold())]
    return tuple(run for run in runs if run and run not in SILENT)


def key_of(text: str) -> str:
    """The words in one: names with the same key are the same name."""
    return "".join(words_of(text))


def _without_brand(run: str) -> str:
    """`teslav` (of `TeslaV100`) → `v`."""
    while run.startswith(_BRANDS):
        run = next(run.removeprefix(brand) for brand in _BRANDS if run.startswith(brand))
    return run


def read_wish(words: Sequence[str]) -> Wish | None:
    """What `words` ask for; None when one of them means nothing here, so that no word is passed over."""
    wish = Wish()
    ahead = list(reversed(words))
    while ahead:
        word = ahead.pop()
        if ahead and (word, ahead[-1]) in _PAIRS:
            word = _PAIRS[word, ahead.pop()]
        if not (_read_number(wish, word, ahead) if word[0].isdigit() else _read_word(wish, word, ahead)):
            return None
    return wish


def _read_word(wish: Wish, word: str, ahead: list[str]) -> bool:
    if word in _FORMS:
        _read_form(wish, _FORMS[word], ahead)
    elif word in _MEMORY_TYPES and ahead and ahead[-1].isdigit():
        wish.memory_type = word + ahead.pop()
        if ahead and ahead[-1] == _MEMORY_TYPES[word]:
            wish.memory_type += ahead.pop()
    elif word in _ARCHITECTURES:
        wish.architecture = word
    elif word == "mig":
        wish.part = True
    else:
        return word in _SAYS_NOTHING_MORE
    return True


def _read_form(wish: Wish, form: str, ahead: list[str]) -> None:
    if form == "sxm" and ahead and len(ahead[-1]) == 1 and ahead[-1].isdigit():
        form += ahead.pop()
    if wish.form != "max-q" or form != "workstation":  # "Max-Q Workstation Edition" is the Max-Q card
        wish.form = form


def _read_number(wish: Wish, word: str, ahead: list[str]) -> bool:
    if len(ahead) >= 3 and (ahead[-1], ahead[-3]) == ("g", "gb") and ahead[-2].isdigit():
        wish.part = True
        wish.profile = f"{word}g.{ahead[-2]}gb"
        del ahead[-3:]
        return True
    if ahead and ahead[-1] in _MEMORY_UNITS:
        ahead.pop()
    # A bare number is memory too: our own ids are written so (`V100-SXM2-32`).
    if wish.part:
        wish.part_memory_gb = float(word)
    elif wish.memory_gb is None:
        wish.memory_gb = float(word)
    else:
        return False
    return True
