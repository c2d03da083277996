"""Shares of the server stay within their bounds, and no request waits forever."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from teraflock.api.shares import OPERATORS, Shares, Turns, tenant_of
from teraflock.base.errors import TooMany
from teraflock.tenant.model import Actor, KeyId, MemberId, OrganisationId


def actor(organisation: str, *, is_operator: bool = False) -> Actor:
    return Actor(
        key_id=KeyId("key_1"),
        member_id=MemberId("mem_1"),
        member_name="ann",
        organisation_id=OrganisationId(organisation),
        is_operator=is_operator,
        roles={},
    )


ACTORS = [actor("a"), actor("b"), actor("c"), actor("operator", is_operator=True)]


@given(
    most=st.integers(1, 12),
    each=st.integers(1, 12),
    steps=st.lists(st.tuples(st.sampled_from(ACTORS), st.booleans()), max_size=80),
)
def test_shares_stay_within_bounds_and_are_released(
    most: int, each: int, steps: list[tuple[Actor, bool]]
) -> None:
    shares = Shares("things", most, each, hint="", retry_seconds=1)
    kept = -(-most // 8) if most > 1 else 0
    share = min(each, max(1, (most - kept) // 2))
    taken: dict[str, int] = {}
    for who, comes in steps:
        tenant = tenant_of(who)
        if comes:
            before = sum(taken.values())
            try:
                shares.enter(who)
            except TooMany:
                assert before >= most or tenant != OPERATORS, "an operator is refused only by a full server"
                assert taken.get(tenant, 0) >= share or before >= most - kept
            else:
                taken[tenant] = taken.get(tenant, 0) + 1
                assert tenant == OPERATORS or (taken[tenant] <= share and before < most - kept)
                assert before < most
        elif taken.get(tenant):
            shares.leave(who)
            taken[tenant] -= 1
        assert shares.open == sum(taken.values())


def test_tenants_never_take_slots_reserved_for_operators() -> None:
    shares = Shares("things", 8, 8, hint="", retry_seconds=1)
    for who in (*ACTORS[:2] * 3, ACTORS[2]):
        shares.enter(who)
    for who, passes in ((ACTORS[1], False), (ACTORS[3], True), (ACTORS[3], False)):
        try:
            shares.enter(who)
        except TooMany:
            assert not passes
        else:
            assert passes


@given(works=st.lists(st.tuples(st.sampled_from("ab"), st.booleans()), max_size=30), each=st.integers(1, 3))
def test_queue_is_bounded_and_every_request_gets_a_turn(works: list[tuple[str, bool]], each: int) -> None:
    async def scene() -> None:
        turns = Turns(each, 100)
        running = {"a": 0, "b": 0}
        done: list[str] = []

        async def work(tenant: str) -> None:
            await turns.enter(tenant)
            running[tenant] += 1
            assert running[tenant] <= each
            try:
                await asyncio.sleep(0)
                await asyncio.sleep(0)
            finally:
                running[tenant] -= 1
                turns.leave(tenant)
            done.append(tenant)

        tasks = [asyncio.ensure_future(work(tenant)) for tenant, _ in works]
        await asyncio.sleep(0)
        for task, (_, is_cancelled) in zip(tasks, works, strict=True):
            if is_cancelled:
                task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert len(done) == sum(not task.cancelled() for task in tasks)
        assert len(turns) == 0

    asyncio.run(scene())
