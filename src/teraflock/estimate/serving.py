"""Serving a language model: prefill and decoding apart, for so many users with so much context each.

Prefill reads one prompt as long as the context; its time is the time to the first token. Decoding computes one token
for every user at once, with all keys and values in a cache, as engines with CUDA graphs do: the host does not limit it.
Its time is the sum of four parts, fitted on decoding measured on an H200 (`lab/fit_serving.py`): matrix products
at their roofline, one launch for each kernel, what each doubling of users adds to that, and reading the cache.
"""

from collections.abc import Sequence
from math import log2
from typing import Final

import msgspec

from teraflock.base.errors import BadInput
from teraflock.catalog.model import Card
from teraflock.estimate.batch import LIMIT_SHARE
from teraflock.estimate.cards import doubt, evidence, known_peaks, refuses, reservable_bytes
from teraflock.estimate.estimator import Estimator, step_of
from teraflock.estimate.memory import Scene, plain_peak
from teraflock.estimate.speed import Peaks, floor_seconds
from teraflock.estimate.step import OWN, Seconds
from teraflock.workload import zoo
from teraflock.workload.model import Workload
from teraflock.workload.trace import EVENT_KINDS, EventKind, Trace

PRODUCTS: Final = 1.432
KERNEL_SECONDS: Final = 1.966e-6
DOUBLING_SECONDS: Final = 0.162e-6
CACHE: Final = 1.040
SPREAD: Final = (0.05, 0.15)
"""How far off decoding of held-out models was, down and up, as shares: the ninth of ten."""
USERS_MAX: Final = 1 << 16
PRECISIONS: Final = ("bf16", "fp16")


class Load(msgspec.Struct, frozen=True, kw_only=True):
    users: int
    context: int
    """Tokens of each user in the cache: prompt and answer together."""


class Serving(msgspec.Struct, frozen=True, kw_only=True):
    """One card under one load."""

    gpu: str
    fits: bool
    users_max: int
    """Users with this context for whom the card has room."""
    first_token_seconds: Seconds | None
    token_seconds: Seconds | None
    tokens_per_second_per_user: float | None
    tokens_per_second: float | None
    """Of all users together."""
    memory_bytes: int
    need_bytes: int
    evidence: str


class ServingAnswer(msgspec.Struct, frozen=True, kw_only=True):
    workload: Workload
    load: Load
    weights_bytes: int
    kv_cache_bytes: int
    gpus: list[Serving]


def serve(workload: Workload, load: Load, cards: Sequence[Card]) -> ServingAnswer:
    checked(workload, load)
    known = _Known(workload, load)
    return ServingAnswer(
        workload=workload,
        load=load,
        weights_bytes=known.weights_bytes,
        kv_cache_bytes=load.users * known.kv_bytes_per_user,
        gpus=[_on_card(known, card) for card in cards],
    )


def checked(workload: Workload, load: Load) -> None:
    entry = zoo.entry(workload.model)
    if not 1 <= load.users <= USERS_MAX:
        raise BadInput(f"`--users` must be between 1 and {USERS_MAX:,}, not {load.users:,}")
    if workload.precision not in PRECISIONS:
        raise BadInput("Serving is estimated in bf16 and fp16", hint="Use `--precision bf16`")
    shape = entry.shape
    if shape is not None and "latent" in shape.widths:
        raise BadInput(
            f"Serving is not estimated for {entry.name}: its cache holds latent vectors, which was not measured",
            hint="`tera estimate --task infer --kv-cache` gives the memory",
        )
    if shape is None or len(shape.layers) > 1 or not shape.kv_elements_per_token:
        raise BadInput(
            f"Serving is estimated for decoders that are known by their config, and {entry.name} is not",
            hint="For example `llama-3.1-8b`, or a Hugging Face `config.json`",
        )
    if not 1 <= load.context <= entry.seq_max:
        raise BadInput(
            f"{entry.name} has {entry.seq_max:,} positions, so `--context {load.context}` does not fit",
            hint=f"Use `--context {entry.seq_max}` or less",
        )


class _Known:
    """What is the same on every card."""

    def __init__(self, workload: Workload, load: Load) -> None:
        self.workload, self.load = workload, load
        entry = zoo.entry(workload.model)
        assert entry.shape is not None
        self.kv_bytes_per_user = 2 * entry.kv_elements_per_token * load.context
        self.layers = entry.shape.layers[0]
        vocabulary = entry.shape.widths["vocab"]
        prompt = Estimator(_sized(workload, 1, load.context))
        self.estimator = prompt
        prompt.trace = one_row_of_logits(prompt.trace, prompt.scene().sizes, vocabulary)
        scene = Scene(prompt.trace, zoo.symbols_for(prompt.workload, prompt.trace), prompt.known.workspace)
        self.prefill = step_of(prompt, scene, host=OWN)
        self.weights_bytes = sum(
            scene.sizes[event // EVENT_KINDS]
            for event, kind in zip(
                (each for each in scene.setup if each % EVENT_KINDS == EventKind.ALLOCATE),
                prompt.trace.kinds,
                strict=False,
            )
            if kind == "p"
        )
        self.prefill_bytes = plain_peak(scene, "none", cublas_bytes=prompt.cublas_bytes)
        works = Estimator(_sized(workload, load.users, 1)).scene().step_works()
        self.works = [each for each in works if each.kernel]

    def token_seconds(self, peaks: Peaks) -> float:
        kernel = KERNEL_SECONDS + DOUBLING_SECONDS * log2(self.load.users)
        products = sum(
            floor_seconds(each, peaks, tf32=False) for each in self.works if each.family == "matmul"
        )
        cache = self.load.users * self.kv_bytes_per_user / (peaks.bandwidth * peaks.bandwidth_reach)
        return PRODUCTS * products + kernel * len(self.works) + CACHE * cache


def _sized(workload: Workload, batch: int, seq: int) -> Workload:
    return msgspec.structs.replace(workload, task="infer", batch=batch, seq=seq, kv_cache=False)


def one_row_of_logits(trace: Trace, sizes: Sequence[int], vocabulary: int) -> Trace:
    """The trace without the head's product over the whole prompt: only its last token is needed."""
    heads = {
        at
        for at, operation in enumerate(trace.operations)
        if any(each.shape and sizes[each.shape[-1]] == vocabulary for each in operation.outputs)
    }
    logits = {
        size
        for at in heads
        for each in trace.operations[at].outputs
        for size in (_bytes(each.shape, sizes, 2), _bytes(each.shape, sizes, 4))
    }
    small = min(range(len(sizes)), key=lambda at: sizes[at] if sizes[at] > 0 else 1 << 60)
    events = []
    started = False
    for event in trace.events:
        kind, argument = event % EVENT_KINDS, event // EVENT_KINDS
        started |= kind == EventKind.MARK
        if started and kind == EventKind.OPERATE and argument in heads:
            continue
        if started and kind == EventKind.ALLOCATE and sizes[argument] in logits:
            event = small * EVENT_KINDS + kind
        events.append(event)
    return msgspec.structs.replace(trace, events=events)


def _bytes(shape: Sequence[int], sizes: Sequence[int], width: int) -> int:
    for at in shape:
        width *= sizes[at]
    return width


def _on_card(known: _Known, card: Card) -> Serving:
    room = reservable_bytes(card)
    need = known.prefill_bytes + known.load.users * known.kv_bytes_per_user
    refused, peaks = refuses(card, known.workload.precision), known_peaks(card)
    most = max(0, int(LIMIT_SHARE * room) - known.prefill_bytes) // known.kv_bytes_per_user
    if refused or peaks is None:
        return Serving(
            gpu=card.id, fits=not refused and most >= known.load.users, users_max=0 if refused else most,
            first_token_seconds=None, token_seconds=None, tokens_per_second_per_user=None, tokens_per_second=None,
            memory_bytes=room, need_bytes=need,
            evidence=refused or "memory only: the rates of this card are not known",
        )  # fmt: skip
    down, up = doubt(card)
    first, token = known.prefill.seconds(peaks), known.token_seconds(peaks)
    low, high = known.prefill.interval(peaks, (down, up))
    return Serving(
        gpu=card.id,
        fits=most >= known.load.users,
        users_max=most,
        first_token_seconds=Seconds(low, first, high),
        token_seconds=Seconds(token / (1 + SPREAD[0] + down), token, token * (1 + SPREAD[1] + up)),
        tokens_per_second_per_user=1 / token,
        tokens_per_second=known.load.users / token,
        memory_bytes=room,
        need_bytes=need,
        evidence=evidence(card),
    )
