"""However several keys act together, they never gain permissions that none of them had at the start.

The test creates a random world. Then some of its keys, none of them an operator's, act alone: they create and use keys,
add members, give roles, create projects. Afterwards, nothing they hold may do more than they could together before.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.tenant.table import ROLES
from tests.unit.tenant.world import Key, Organisation, Project, World, pick

from teraflock.base.clock import SystemClock
from teraflock.storage.open import open_database

some = st.integers(0, 99)
step = st.tuples(st.integers(0, 4), some, some, some, some)
NARROW = (None, None, *ROLES)


@contextmanager
def a_world() -> Iterator[World]:
    database = open_database(":memory:", SystemClock())
    yield World(database)
    database.close()


def act(world: World, keys: list[Key], how: tuple[int, int, int, int, int]) -> Key | None:
    """One action by one of the keys. Returns the key it created, if any."""
    what, who, first, second, third = how
    key = pick(keys, who)
    place = pick([None, *world.projects], second)
    member = pick([key.member, *world.members, world.operator], first)
    match what:
        case 0:
            return world.make_key(key, member, place, pick(NARROW, third), pick((None, 5), first))
        case 1:
            world.add_member(key, world.name(first), pick(ROLES, third), place)
        case 2:
            world.set_role(key, member, pick((*ROLES, None), third), place)
        case 3:
            world.make_project(key, world.name(first))
        case _:
            world.remove_member(key, member)
    return None


def places(world: World) -> list[Project | Organisation]:
    return [*world.projects, *world.organisations]


def reach(world: World, keys: list[Key], place: Project | Organisation) -> set[str]:
    """The permissions that these keys have together in a project, or in all of an organisation."""
    held = [
        world.may_in(key, place) if isinstance(place, Project) else world.may_in_all(key, place)
        for key in keys
        if world.is_valid(key)
    ]
    return set().union(*held)


@settings(max_examples=150)
@given(
    before=st.lists(step, max_size=25),
    coalition=st.lists(some, min_size=1, max_size=3),
    acts=st.lists(step, max_size=30),
)
def test_keys_acting_together_gain_no_permissions(
    before: list[tuple[int, int, int, int, int]],
    coalition: list[int],
    acts: list[tuple[int, int, int, int, int]],
) -> None:
    with a_world() as world:
        for how in before:
            act(world, world.keys, how)
        tenants = [key for key in world.keys if not key.member.operator]
        ours = [pick(tenants, number) for number in coalition]
        began = {place: reach(world, ours, place) for place in places(world)}
        for how in acts:
            made = act(world, ours, how)
            ours += [made] if made else []
        world.check()
        for place in places(world):
            home = place.organisation if isinstance(place, Project) else place
            allowed = began[place] if place in began else began[home]
            assert reach(world, ours, place) <= allowed
