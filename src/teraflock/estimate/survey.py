"""Estimates one workload card by card, for the planner: whether it fits, and how long a step takes.

It computes no largest batches and no timeline, and reuses its work for any number of GPUs. Invariant: for each card the
result equals that of `answer`.
"""

from functools import cached_property
from math import prod
from typing import Final

import msgspec

from teraflock.base.errors import BadInput
from teraflock.catalog.model import Card
from teraflock.estimate.batch import LIMIT_SHARE, BatchFinder
from teraflock.estimate.cards import reservable_bytes
from teraflock.estimate.estimator import Estimator, finder_for, need_bytes, seconds_on, step_of
from teraflock.estimate.memory import Scene, optimizer_state, peaks_by_phase, plain_peak
from teraflock.estimate.outline import ALLOCATE, FREE
from teraflock.estimate.parallel import offload_seconds
from teraflock.estimate.step import SHARED, Host, Seconds, StepWork
from teraflock.workload.model import Workload
from teraflock.workload.trace import DTYPE_BYTES, EVENT_KINDS

STAGE_MAX: Final = 3


class Fit(msgspec.Struct, frozen=True):
    fits: bool
    missing_bytes: int
    """Missing memory. 0 if the workload fits, or fails only because of fragmentation."""


class Survey:
    """`stage` is the ZeRO stage: GPUs shard 1 the optimizer state, 2 also the gradients, 3 also the weights (FSDP).

    `estimate/sharded.py` computes what each GPU then holds. The optimizer's step works on shards only, so its
    temporaries are sharded too. With `offload` that step runs on the host, which keeps the state.
    """

    def __init__(
        self,
        workload: Workload,
        *,
        stage: int = 0,
        offload: bool = False,
        tensor_parallel: int = 1,
    ) -> None:
        """With `tensor_parallel`, every result for a GPU applies to each GPU of a group of that size."""
        self.estimator = Estimator(workload, tensor_parallel=tensor_parallel)
        self.workload = self.estimator.workload
        self._stage = stage
        self._offload = offload
        if offload and self.estimator.trace.has_optimizer:
            raise BadInput(
                "This trace includes the optimizer's step, so the step cannot be offloaded to the host"
            )
        self._finders: dict[int, tuple[BatchFinder | None, int]] = {}
        self._fits: dict[tuple[str, int], Fit] = {}
        self._steps: dict[Host, StepWork] = {}

    def fit(self, card: Card, gpus: int) -> Fit:
        """On one GPU, or on each of several GPUs, which need a second copy of their gradients."""
        key = (card.id, self._told_apart(gpus))
        if key not in self._fits:
            finder, need = self.finder(gpus)
            room = reservable_bytes(card)
            fits = finder.fits(self.workload.batch, room) if finder else need <= LIMIT_SHARE * room
            self._fits[key] = Fit(fits, 0 if fits else max(0, need - room))
        return self._fits[key]

    def seconds(self, card: Card, host: Host = SHARED) -> Seconds | None:
        """The time of one step on one GPU."""
        if host not in self._steps:
            self._steps[host] = step_of(self.estimator, self.estimator.scene(), host=host)
        return seconds_on(self.estimator, self._steps[host], card)

    @cached_property
    def exchanged_bytes(self) -> float:
        """Bytes that GPUs exchange in a step, expressed as gradients to average, which travel twice.

        With sharded weights there are three transfers: two gathers of the weights and one scatter of the gradients. In
        inference there is one gather, and without sharding nothing.
        """
        if self._stage == STAGE_MAX:
            return (1.5 if self.estimator.trace.has_backward else 0.5) * self._weights
        return float(self.estimator.gradient_bytes())

    def offload_seconds(self, card: Card, gpus: int) -> float:
        """The extra time of a step on each of `gpus` GPUs if the optimizer runs on the host."""
        if not self._offload:
            return 0.0
        # The GPUs of a machine share its cores, so their host always processes the whole state.
        share = 1 / gpus if self._stage else 1.0
        return offload_seconds(card, self._gradients * share, self._optimizer_state)

    def need_bytes(self, gpus: int) -> int:
        return self.finder(gpus)[1]

    @cached_property
    def _tensors(self) -> list[tuple[list[int], int, bool]]:
        """Shape, bytes and trainability of every parameter."""
        scene = self.estimator.lean_scene(self.workload.batch or 1)
        shapes = [([scene.sizes[at] for at in each.shape], each) for each in scene.trace.parameters]
        return [(shape, prod(shape) * DTYPE_BYTES[each.dtype], each.trainable) for shape, each in shapes]

    @cached_property
    def _weights(self) -> int:
        return sum(size for _, size, _ in self._tensors)

    @cached_property
    def _gradients(self) -> int:
        trains = self.estimator.trace.has_backward
        return sum(size for _, size, trained in self._tensors if trained and trains)

    @cached_property
    def _optimizer_state(self) -> int:
        if not self.estimator.trace.has_backward:
            return 0
        if self.estimator.trace.has_optimizer:
            return _optimizer_bytes(self.estimator.lean_scene(self.workload.batch or 1))
        optimizer = self.estimator.optimizer
        return sum(
            sum(optimizer_state(optimizer, shape, size)) for shape, size, trained in self._tensors if trained
        )

    def finder(self, gpus: int) -> tuple[BatchFinder | None, int]:
        """Finds the largest batch on each of `gpus` GPUs, and the bytes that the batch asked for needs there. No
        finder for a trace with a fixed batch."""
        gpus = self._told_apart(gpus)
        if gpus not in self._finders:
            share = 0.0 if self._offload else 1 / gpus if self._stage else 1.0
            finder = finder_for(self.estimator, self._extra_bytes(gpus, share), share)
            need = need_bytes(self.estimator, finder) if finder else self._need_of_trace(gpus, share)
            self._finders[gpus] = finder, need
        return self._finders[gpus]

    def _told_apart(self, gpus: int) -> int:
        """Without sharding, the memory per GPU is the same for two GPUs and more."""
        return gpus if self._stage else min(gpus, 2)

    def _extra_bytes(self, gpus: int, share: float) -> int:
        """The difference between the peak on each GPU and the peak on a single GPU with this share of the optimizer's
        temporaries."""
        if self._stage > 1 and gpus > 1:
            return self._sharded_peak(gpus) - self._plain_peak(share)
        gradients = self.estimator.gradient_bytes() if gpus > 1 else 0
        leaves = 1.0 if self._offload else 1 - 1 / gpus if self._stage else 0.0
        return round(gradients - self._optimizer_state * leaves)

    def _need_of_trace(self, gpus: int, share: float) -> int:
        """The need of a trace with a fixed batch. In stage 1 the optimizer's step works on shards, and the weights stay
        whole."""
        scene = self.estimator.lean_scene(self.workload.batch)
        if not scene.trace.has_optimizer or not self._stage or gpus == 1:
            return self._plain_peak(share) + self._extra_bytes(gpus, share)
        if self._stage > 1:
            return self._sharded_peak(gpus)
        before, within = peaks_by_phase(scene)
        return max(before + self._extra_bytes(gpus, share), round(within / gpus) + self._weights)

    def _plain_peak(self, share: float) -> int:
        scene = self.estimator.lean_scene(self.workload.batch)
        cublas_bytes = self.estimator.cublas_bytes
        return plain_peak(scene, self.estimator.optimizer, cublas_bytes=cublas_bytes, temporary_share=share)

    def _sharded_peak(self, gpus: int) -> int:
        from teraflock.estimate.sharded import sharded_peak  # imported here: few estimates need it

        return sharded_peak(
            self.estimator.lean_scene(self.workload.batch),
            self.estimator.optimizer,
            cublas_bytes=self.estimator.cublas_bytes,
            stage=self._stage,
            gpus=gpus,
            offload=self._offload,
        )


def _optimizer_bytes(scene: Scene) -> int:
    """The optimizer's state in a trace: allocated before the step, or during the step and not freed."""
    kinds, live = scene.trace.kinds, {}
    born = 0
    for part in (scene.setup, scene.step):
        for event in part:
            kind, argument = event % EVENT_KINDS, event // EVENT_KINDS
            if kind == ALLOCATE:
                if kinds[born] == "o":
                    live[born] = scene.sizes[argument]
                born += 1
            elif kind == FREE:
                live.pop(born - argument, None)
    return sum(live.values())
