"""Our placement rule for clusters with shares of cards, as arrays over all classes of pods.

The expected pods are those of the list, as FGD assumes too. The weights were chosen on lists other than the default one
(see `docs/decisions`).
"""

from typing import Final

import numpy as np

from bench.placement_cluster import CARD, Classes, Floats, State
from teraflock.fleet.room import stranded

STEPS: Final = 2000
"""The number of steps in the tables of processors and memory per card."""
RANGE: Final = 10
"""How far the tables go, in mean needs. Without it, one tiny share with much memory would make the steps coarse."""
CPU_WEIGHT: Final = 4.0
RAM_WEIGHT: Final = 2.0
"""Stranded cards count more than rests of cards: small pods still fit on a rest, but nothing uses a stranded card."""
WHOLE_WEIGHT: Final = 0.5


class LeastWaste:
    """Place a pod where it adds least to the GPU capacity that the expected pods cannot use.

    The waste of a node is the sum of three parts, in thousandths of cards:
    - free cards that lack processors or memory (`stranded`, as for launches), averaged over the classes;
    - rests of cards, each times the fraction of the classes that do not fit on it;
    - whole cards, times the fraction of the demand that needs more of them than the node has.
    """

    def __init__(self, classes: Classes, cards_max: int) -> None:
        self._classes = classes
        uses_cards = classes.demand > 0
        weights = np.where(uses_cards, classes.counts, 0) / max(1, classes.counts[uses_cards].sum())
        needs = np.array([classes.cpu, classes.ram])
        per_card = np.where(uses_cards, needs * CARD / np.maximum(classes.demand, 1), 0)
        longest = np.minimum(per_card.max(axis=1), RANGE * (per_card @ weights))
        self._step = (np.maximum(longest, 1) / STEPS).tolist()
        self._cpu, self._ram = classes.cpu / self._step[0], classes.ram / self._step[1]
        self._by_cpu = CPU_WEIGHT * _stranded_table(per_card[0], weights, self._step[0])
        self._by_ram = RAM_WEIGHT * _stranded_table(per_card[1], weights, self._step[1])
        self._rests, self._opens = _card_tables(classes, weights, cards_max)
        self._refused = np.where(classes.accepts, 0, np.inf)

    def scores(self, state: State) -> Floats:
        have = (state.cpu / self._step[0], state.ram / self._step[1])
        cpu, ram = have[0] - self._cpu, have[1] - self._ram
        scores = self._waste_after(cpu, ram, state.free - self._classes.demand)
        scores -= self._waste(*have, state.free)
        scores += self._of_cards(state)
        scores += self._refused[state.model]
        scores[np.minimum(cpu, ram) < 0] = np.inf
        return scores

    def card(self, state: State, number: int) -> int:
        opened = self._opens[state.whole, number]
        costs = [(self._rests[free, number], free) for free in state.cards if free < CARD]
        cost, free = min(costs, default=(np.inf, 0))
        return free if cost <= opened else CARD

    def _waste(self, cpu: float, ram: float, free: int) -> float:
        """The stranded cards beside processors and memory, which are in steps of the tables."""
        scale = CARD / max(free, 1)
        waste: float = self._by_cpu[min(int(cpu * scale), STEPS)] + self._by_ram[min(int(ram * scale), STEPS)]
        return waste * free

    def _waste_after(self, cpu: Floats, ram: Floats, free: Floats) -> Floats:
        """The same after each class. What is negative does not fit, and its waste does not matter."""
        scale = CARD / np.maximum(free, 1)
        waste: Floats = self._by_cpu.take((cpu * scale).astype(np.intp), mode="clip")
        waste += self._by_ram.take((ram * scale).astype(np.intp), mode="clip")
        waste *= free
        return waste

    def _of_cards(self, state: State) -> Floats:
        opened: Floats = self._opens[state.whole]
        begun = [free for free in state.cards if 0 < free < CARD]
        if not begun:
            return opened
        rests: Floats = np.minimum(opened, self._rests[begun].min(axis=0))
        return rests


def _stranded_table(needed: Floats, weights: Floats, step: float) -> Floats:
    """The part of the free cards that lacks processors (or memory), by what there is of it per card."""
    rows = [(need, weight) for need, weight in zip(needed.tolist(), weights.tolist(), strict=True) if weight]
    have = [number * step for number in range(STEPS + 1)]
    return np.array([sum(weight * stranded(1, amount, need) for need, weight in rows) for amount in have])


def _card_tables(classes: Classes, weights: Floats, cards_max: int) -> tuple[Floats, Floats]:
    """What each class costs on the rest of a card (by its free thousandths), and on whole cards (by their number)."""
    free = np.arange(CARD + 1)
    unusable = np.where(classes.share > free[:, None], weights, 0).sum(axis=1) * free
    unusable[CARD] = 0
    is_share = (classes.demand > 0) & (classes.share < CARD)
    after = free[:, None] - classes.share
    rests = np.where(is_share & (after >= 0), unusable[np.maximum(after, 0)] - unusable[:, None], np.inf)
    whole = np.arange(cards_max + 1)
    demand = classes.counts * classes.demand / max(1, (classes.counts * classes.demand).sum())
    lacks = np.where(classes.cards > whole[:, None], demand, 0).sum(axis=1)
    short = WHOLE_WEIGHT * CARD * lacks * whole
    whole_after = whole[:, None] - classes.cards
    opens = np.where(whole_after >= 0, short[np.maximum(whole_after, 0)] - short[:, None], np.inf)
    opens += np.where(is_share, rests[CARD], 0)
    return rests, opens
