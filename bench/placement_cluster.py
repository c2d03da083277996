"""A simulated cluster for the placement benchmark: nodes, classes of equal pods, and the rule under test.

Pods never leave. For every class the cluster keeps the score of every node (smaller is better). A placement changes one
node, so only that node is scored again, for all classes at once. That makes a placement a row's minimum and one column.
"""

from collections.abc import Sequence
from typing import Final, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

CARD: Final = 1000
"""A whole card, in thousandths."""

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


class Node(msgspec.Struct, frozen=True):
    cpu: int
    ram: int
    cards: int
    model: str


class Pod(msgspec.Struct, frozen=True, order=True):
    """What a pod asks for. Pods that ask for the same are one class."""

    cpu: int
    ram: int
    cards: int
    share: int
    """Thousandths of each card: less than `CARD` only for one card."""
    models: tuple[str, ...] = ()
    """The card models that it accepts. Empty: all."""

    @property
    def demand(self) -> int:
        return self.cards * self.share


class State(msgspec.Struct):
    """The free room of one node."""

    cpu: int
    ram: int
    cards: list[int]
    """Thousandths of each card that are free."""
    model: int

    @property
    def key(self) -> tuple[int, ...]:
        return (self.cpu, self.ram, self.model, *sorted(self.cards))

    @property
    def free(self) -> int:
        return sum(self.cards)

    @property
    def whole(self) -> int:
        return self.cards.count(CARD)


class Classes:
    """The classes of a list as columns, with the number of pods in each."""

    def __init__(self, pods: Sequence[Pod], models: Sequence[str]) -> None:
        self.all = sorted(set(pods))
        numbers = {pod: number for number, pod in enumerate(self.all)}
        self.of_pods = [numbers[pod] for pod in pods]
        self.counts = np.bincount(self.of_pods, minlength=len(self.all)).astype(float)
        self.cpu = np.array([pod.cpu for pod in self.all], float)
        self.ram = np.array([pod.ram for pod in self.all], float)
        self.cards = np.array([pod.cards for pod in self.all])
        self.share = np.array([pod.share for pod in self.all])
        self.demand = self.cards * self.share
        self.accepts = np.array(
            [[not pod.models or model in pod.models for pod in self.all] for model in models], bool
        ).reshape(len(models), len(self.all))

    def fits_beside_cards(self, state: State) -> Bools:
        enough: Bools = (self.cpu <= state.cpu) & (self.ram <= state.ram) & self.accepts[state.model]
        return enough


class Rule(Protocol):
    """Scores a node for all classes. Smaller is better, infinite where the pod does not fit."""

    def scores(self, state: State) -> Floats: ...

    def card(self, state: State, number: int) -> int:
        """The free thousandths of the card that a share of class `number` gets."""
        ...


class Cluster:
    def __init__(self, nodes: Sequence[Node], classes: Classes, models: Sequence[str], rule: Rule) -> None:
        self._classes, self._rule = classes, rule
        numbers = {model: number for number, model in enumerate(models)}
        self.states = [State(node.cpu, node.ram, [CARD] * node.cards, numbers[node.model]) for node in nodes]
        kinds: dict[tuple[int, ...], Floats] = {}
        for state in self.states:
            if state.key not in kinds:
                kinds[state.key] = rule.scores(state)
        self._scores = np.array([kinds[state.key] for state in self.states]).T.copy()

    def place(self, number: int) -> int | None:
        """Place a pod of class `number`. Return the number of its node, or None if it fits nowhere."""
        row = self._scores[number]
        node = int(row.argmin())
        if row[node] == np.inf:
            return None
        state, pod = self.states[node], self._classes.all[number]
        if 0 < pod.share < CARD:
            state.cards[state.cards.index(self._rule.card(state, number))] -= pod.share
        else:
            for _ in range(pod.cards):
                state.cards[state.cards.index(CARD)] = 0
        state.cpu -= pod.cpu
        state.ram -= pod.ram
        self._scores[:, node] = self._rule.scores(state)
        return node
