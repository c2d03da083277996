"""Random runs of an installation, drawn and shrunk by Hypothesis. Each step is a move and a seed for its
decisions."""

from random import Random
from typing import ClassVar

from hypothesis import note
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.simulation.checks import balance, check
from tests.simulation.cloud import Cloud
from tests.simulation.intake import Intake
from tests.simulation.moves import MOVES, Move
from tests.simulation.walk import CHECK_EVERY, begin, checks


class CloudMachine(RuleBasedStateMachine):
    cloud: Cloud | None = None
    current = Intake()
    """The intake of the current run."""
    totals: ClassVar[dict[str, int]] = {}

    @initialize(seed=st.integers(0, 1 << 16))
    def move_in(self, seed: int) -> None:
        CloudMachine.current = Intake()
        self.cloud = Cloud(seed=seed)
        CloudMachine.current = self.cloud.intake
        begin(self.cloud)

    @rule(move=st.sampled_from(MOVES), seed=st.integers(0, 1 << 32))
    def move(self, move: Move, seed: int) -> None:
        assert self.cloud is not None
        note(move.__name__)
        move(self.cloud, Random(seed))
        self.cloud.count["moves"] += 1
        if self.cloud.count["moves"] % CHECK_EVERY == 0:
            checks(self.cloud.count["moves"])(self.cloud)

    @invariant()
    def books_balance(self) -> None:
        if self.cloud is not None:
            balance(self.cloud)

    def teardown(self) -> None:
        if self.cloud is not None:
            check(self.cloud)
            self.cloud.count.update(late=self.cloud.intake.delayed, doubled=self.cloud.intake.doubled)
            for name, count in self.cloud.count.items():
                CloudMachine.totals[name] = CloudMachine.totals.get(name, 0) + count
            self.cloud.database.close()
