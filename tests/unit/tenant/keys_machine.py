"""A state machine for keys: created, expired, revoked, their members removed, their roles changed.

Every step acts on the service and on the model of world.py. After each step, both must agree about every key.
"""

from datetime import timedelta

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.unit.tenant.table import ROLES
from tests.unit.tenant.world import Key, Member, Project, World, pick

from teraflock.storage.database import Database

some = st.integers(0, 99)
role = st.sampled_from(ROLES)
cap = st.sampled_from((None, *ROLES))
days = st.sampled_from((None, None, 1, 10, 100))


def machine_on(database: Database) -> type[RuleBasedStateMachine]:
    """A machine whose worlds are all in this database."""

    class KeysMachine(RuleBasedStateMachine):
        @initialize(first=role, second=role)
        def begin(self, first: str, second: str) -> None:
            self.world = World(database)
            ann = self.world.keys[1]
            self.world.make_project(ann, self.world.name(0))
            for number, given in enumerate((first, second)):
                self.world.add_member(ann, self.world.name(number), given, self._place(number))
                self.world.make_key(ann, self.world.members[-1], None, None, None)

        @rule(key=some, whose=some, own=st.booleans(), place=some, narrow=cap, life=days)
        def make_key(
            self, key: int, whose: int, own: bool, place: int, narrow: str | None, life: int | None
        ) -> None:
            maker = self._key(key)
            member = maker.member if own else self._member(whose)
            self.world.make_key(maker, member, self._place(place), narrow, life)

        @rule(key=some, which=some)
        def revoke(self, key: int, which: int) -> None:
            self.world.revoke(self._key(key), self._key(which))

        @rule(key=some, name=some, given=role, place=some)
        def add_member(self, key: int, name: int, given: str, place: int) -> None:
            self.world.add_member(self._key(key), self.world.name(name), given, self._place(place))

        @rule(key=some, whose=some, given=cap, place=some)
        def set_role(self, key: int, whose: int, given: str | None, place: int) -> None:
            self.world.set_role(self._key(key), self._member(whose), given, self._place(place))

        @rule(key=some, whose=some)
        def remove_member(self, key: int, whose: int) -> None:
            self.world.remove_member(self._key(key), self._member(whose))

        @rule(key=some, name=some)
        def make_project(self, key: int, name: int) -> None:
            self.world.make_project(self._key(key), self.world.name(name))

        @rule(key=some, place=some)
        def remove_project(self, key: int, place: int) -> None:
            self.world.remove_project(self._key(key), pick(self.world.projects, place))

        @rule(hours=st.sampled_from((1, 24, 500)))
        def wait(self, hours: int) -> None:
            self.world.clock.move(timedelta(hours=hours))

        @invariant()
        def agree(self) -> None:
            if hasattr(self, "world"):
                self.world.check()

        def teardown(self) -> None:
            if hasattr(self, "world"):
                self.world.clean_up()

        def _key(self, number: int) -> Key:
            return pick(self.world.keys, number)

        def _member(self, number: int) -> Member:
            return pick([self.world.operator, *self.world.members], number)

        def _place(self, number: int) -> Project | None:
            return pick([None, *self.world.projects], number)

    return KeysMachine
