"""Rules of others for the placement benchmark: best fit, and fragmentation gradient descent (FGD).

FGD is the rule of Weng et al., "Beware of Fragmentation" (USENIX ATC 2023), as its simulator computes it: the score is
rounded to 0..100, and of nodes with equal scores the first is chosen.
"""

import numpy as np
from numpy.typing import NDArray

from bench.placement_cluster import CARD, Classes, Floats, State

Whole = NDArray[np.int64]


class BestFit:
    """The node with the least left after the pod: processors, memory and cards as parts of the largest node's."""

    def __init__(self, classes: Classes, largest: tuple[int, int, int]) -> None:
        self._classes, self._largest = classes, largest

    def scores(self, state: State) -> Floats:
        classes, (cpu, ram, cards) = self._classes, self._largest
        share = (classes.share > 0) & (classes.share < CARD)
        fits = classes.fits_beside_cards(state)
        fits &= np.where(share, max(state.cards, default=0) >= classes.share, state.whole >= classes.cards)
        left = (state.cpu - classes.cpu) / max(cpu, 1) + (state.ram - classes.ram) / max(ram, 1)
        left += (state.free - classes.demand) / max(cards * CARD, 1)
        return np.where(fits, left, np.inf)

    def card(self, state: State, number: int) -> int:
        return min(free for free in state.cards if free >= self._classes.all[number].share)


class Fgd:
    """Equal states are scored once and kept, because a score takes about a millisecond."""

    def __init__(self, classes: Classes) -> None:
        self._classes = classes
        self._weights = classes.counts / classes.counts.sum()
        self._kept: dict[tuple[int, ...], tuple[Floats, list[int]]] = {}

    def scores(self, state: State) -> Floats:
        return self._scored(state)[0]

    def card(self, state: State, number: int) -> int:
        return self._scored(state)[1][number]

    def _scored(self, state: State) -> tuple[Floats, list[int]]:
        if (found := self._kept.get(state.key)) is None:
            found = self._kept[state.key] = self._computed(state)
        return found

    def _computed(self, state: State) -> tuple[Floats, list[int]]:
        before = self._fragments(
            np.array([state.cpu], float), np.array([state.ram], float), np.array([state.cards]), state
        )
        best = np.full(len(self._classes.all), np.inf)
        chosen = np.zeros(len(self._classes.all), int)
        for numbers, card, cards in self._options(state):
            cpu, ram = state.cpu - self._classes.cpu[numbers], state.ram - self._classes.ram[numbers]
            grown = self._fragments(cpu, ram, cards, state) - before
            rounded = -np.floor(100 / (1 + np.exp(grown / CARD)))
            better = rounded < best[numbers]
            best[numbers[better]] = rounded[better]
            chosen[numbers[better]] = card
        return best, chosen.tolist()

    def _options(self, state: State) -> list[tuple[Whole, int, Whole]]:
        """Classes that fit, the card that they would share, and the free cards after each of them."""
        classes, fits = self._classes, self._classes.fits_beside_cards(state)
        share = (classes.share > 0) & (classes.share < CARD)
        cards = np.array(state.cards)
        numbers = np.flatnonzero(fits & ~share & (classes.cards <= state.whole))
        rank = np.cumsum(cards == CARD)
        taken = (cards == CARD) & (rank <= classes.cards[numbers][:, None])
        options = [(numbers, 0, np.where(taken, 0, cards))]
        for free in sorted(set(state.cards) - {0}):
            numbers = np.flatnonzero(fits & share & (classes.share <= free))
            after = np.repeat(cards[None], len(numbers), axis=0)
            after[:, state.cards.index(free)] -= classes.share[numbers]
            options.append((numbers, free, after))
        return [option for option in options if len(option[0])]

    def _fragments(self, cpu: Floats, ram: Floats, cards: Whole, state: State) -> Floats:
        """The free GPU that the expected class cannot use, for many free rooms of one node. A class without cards uses
        none of it."""
        classes = self._classes
        accepted = classes.accepts[state.model]
        total = cards.sum(axis=1)[:, None]
        fits = (cpu[:, None] >= classes.cpu) & (ram[:, None] >= classes.ram) & accepted
        enough = (cards[:, :, None] >= np.where(classes.share < CARD, classes.share, CARD)).sum(axis=1)
        fits &= (enough >= classes.cards) & (classes.cards > 0)
        small = np.where(cards[:, :, None] < classes.share, cards[:, :, None], 0).sum(axis=1)
        fragments: Floats = np.where(fits, small, total) @ self._weights
        return fragments
