"""Parses the options of an estimate, as `tera estimate` and the API take them, into a workload and a question."""

from collections.abc import Sequence
from math import nan
from typing import Final

from teraflock.base.errors import BadInput
from teraflock.base.quantities import Whole, Word, Words, check_between, parse_memory_bytes
from teraflock.catalog.cards import all_cards, cards_by_id
from teraflock.catalog.model import Card
from teraflock.catalog.names import find_cards, find_kinds, find_parts
from teraflock.catalog.words import key_of
from teraflock.estimate.cards import refuses, reservable_of_label, unsupported
from teraflock.estimate.cpu import CORES, CORES_MAX
from teraflock.estimate.derived import is_slice, sliced, throttled
from teraflock.estimate.model import GPUS_MAX, Limit, Question
from teraflock.estimate.step import HOSTS, SHARED, Host
from teraflock.workload.model import Workload
from teraflock.workload.words import WorkloadWords, check_total, total_samples, workload_from

PACE_MIN: Final = 0.1
PACE_MAX: Final = 100.0
"""Beyond any CPU: a larger or smaller number is a mistake."""


class EstimateWords(WorkloadWords, frozen=True, kw_only=True, forbid_unknown_fields=True):
    model: Word
    gpu: Words = ()
    """Cards, MIG slices, or cards that the user added. Empty or `all` means every card."""
    clock: float | None = None
    """Lock the GPU clock at this many MHz."""
    power_limit: float | None = None
    """Limit the GPU to this many watts."""
    gpus: Whole | None = None
    memory_limit: Words = ()
    cpu: Word = SHARED
    """Whose CPU cores issue the steps: `shared` with others, or your `own`. Or a number: how many times as long as the
    measured host yours takes to issue a step."""
    cpu_cores: Whole = CORES
    """Add an estimate without a GPU, on this many cores. 0 for none."""
    expandable_segments: bool = False


def understood(words: EstimateWords, own_cards: Sequence[Card]) -> tuple[Workload, Question]:
    """Parse the options into a workload and a question. `own_cards` are the cards that the user added."""
    workload = workload_from(words.model, _batch(words), words)
    cards = cards_from(
        words.gpu,
        limits=words.memory_limit,
        clock=words.clock,
        power_limit=words.power_limit,
        own_cards=own_cards,
    )
    question = question_from(words, cards=cards)
    _refuse_all(cards, workload.precision)
    return workload, question


def _batch(words: EstimateWords) -> int | None:
    """Samples on each GPU, or each group of GPUs."""
    check_total(words)
    if words.global_batch is None:
        return words.batch
    groups = gpus_of(words) // words.ways
    if words.global_batch < groups:
        raise BadInput(
            f"A global batch of {words.global_batch} cannot be divided among {groups} GPUs",
            hint=f"Use at least `--global-batch {groups}`, or fewer `--gpus`",
        )
    return -(-words.global_batch // groups)


def question_from(words: EstimateWords, *, cards: Sequence[Card]) -> Question:
    for name in ("steps", "epochs", "samples"):
        value: float | None = getattr(words, name)
        if value is not None and not 0 < value < float("inf"):
            raise BadInput(f"`--{name}` must be greater than 0, not {value:g}")
    check_between("cpu-cores", words.cpu_cores, 0, CORES_MAX)
    if words.ways > 1:
        _refuse_slices(cards)
    return Question(
        cards=cards,
        limits=[_limit(text) for text in words.memory_limit],
        gpus=gpus_of(words),
        tensor_parallel=words.ways,
        global_batch=words.global_batch,
        stage=_stage(words),
        offload=words.offload,
        steps=words.steps,
        samples=total_samples(words),
        cpu_cores=words.cpu_cores,
        host=_host(words.cpu),
        expandable_segments=words.expandable_segments,
    )


def _host(text: str) -> Host:
    if text in HOSTS:
        return text
    try:
        pace = float(text)
    except ValueError:
        pace = nan
    if not PACE_MIN <= pace <= PACE_MAX:
        raise BadInput(
            f"`--cpu` must be `shared`, `own` or a number from {PACE_MIN:g} to {PACE_MAX:g}, not `{text[:80]}`",
            hint="2.3 is a host that takes 2.3 times as long as the measured one to issue a step",
        )
    return pace


def _stage(words: EstimateWords) -> int:
    if words.stage and gpus_of(words) == words.ways:
        raise BadInput(
            "Sharding needs at least two GPUs, or two groups of GPUs",
            hint=f"Add `--gpus {GPUS_MAX}`, or remove `--shard` and `--zero`",
        )
    return words.stage


def _refuse_all(cards: Sequence[Card], precision: str) -> None:
    """Raise if no requested card supports the precision: that is a mistake, not a result."""
    if cards and all(refuses(card, precision) for card in cards):
        one = "Choose another card" if unsupported(cards[0]) else "Choose another precision, or newer cards"
        raise BadInput(
            f"{cards[0].id}: {refuses(cards[0], precision)}",
            hint=one if len(cards) == 1 else "None of the requested cards supports this precision",
        )


def _refuse_slices(cards: Sequence[Card]) -> None:
    for card in cards:
        if is_slice(card):
            raise BadInput(
                f"{card.id} is a MIG slice; tensor parallelism needs whole cards",
                hint="Remove `--tensor-parallel`, or choose the whole card",
            )


def gpus_of(words: EstimateWords) -> int:
    """GPUs in total: `--gpus`, which tensor parallelism divides into groups. Default: one group."""
    check_between("gpus", words.gpus, 1, GPUS_MAX)
    ways = words.ways
    gpus = words.gpus or ways
    if gpus % ways:
        raise BadInput(
            f"{gpus} GPUs cannot be divided into groups of {ways}",
            hint=f"Use `--gpus {max(ways, gpus // ways * ways)}`, or remove `--gpus` to use one group",
        )
    return gpus


def _limit(text: str) -> Limit:
    """GB means the advertised memory of a card, of which the driver and CUDA use a part. GiB means what PyTorch may
    reserve."""
    size = parse_memory_bytes(text)
    if text.strip().lower().endswith("ib"):
        return Limit(text, size)
    return Limit(text, reservable_of_label(size), label=True)


def cards_from(
    names: Sequence[str],
    *,
    limits: Sequence[str] = (),
    clock: float | None = None,
    power_limit: float | None = None,
    own_cards: Sequence[Card] = (),
) -> Sequence[Card]:
    if not names and limits:
        return ()
    found = _named(names, own_cards)
    if clock is None and power_limit is None:
        return found
    limited, errors = [], []
    for card in found:
        try:
            limited.append(throttled(card, clock_mhz=clock, watts=power_limit))
        except BadInput as error:
            errors.append(error)
    if errors and ({*names} - {"all"} or not limited):
        raise errors[0]
    return limited  # of all cards, only those that can run like this


def _named(names: Sequence[str], own: Sequence[Card]) -> list[Card]:
    """Find cards of the catalog, their slices, and cards that the user added."""
    if not names or "all" in names:
        return [*(card for card in all_cards() if card.cuda or card.memory_gb), *own]
    found: dict[str, Card] = {}
    for name in names:
        mine = [card for card in own if key_of(card.id) == key_of(name)]
        parts = [sliced(card, part) for card, part in find_parts(name)]
        for card in mine or parts or _whole(name):
            found.setdefault(card.id, card)
    return list(found.values())


def _whole(name: str) -> Sequence[Card]:
    kinds = find_kinds(name)  # raises for an unknown name
    if any(each in cards_by_id() for each in kinds):
        return find_cards(name)
    raise BadInput(
        f"{kinds[0]} cannot be estimated: scripts for CUDA do not run on it without changes",
        hint="`tera offers` lists its prices. `tera estimate` supports NVIDIA cards and, roughly, AMD cards with ROCm",
    )
