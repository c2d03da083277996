"""What is created on an engine before the first guest."""

from typing import Any, cast

import pytest

from teraflock.base.errors import Refused
from teraflock.drivers.lxd.names import Names
from teraflock.drivers.lxd.rest import LxdClient
from teraflock.drivers.lxd.setup import PoolWish, ensure


class Engine:
    """An engine that has nothing of ours."""

    def __init__(self, member: str) -> None:
        self.member = member
        self.asked: list[tuple[str, ...]] = []

    def get(self, *path: str) -> dict[str, Any]:
        self.asked.append(path)
        name = self.member or "machine"
        return {"environment": {"server": "lxd", "server_clustered": bool(self.member), "server_name": name}}

    def post(self, *path: str, **body: object) -> None:
        self.asked.append(path)


@pytest.mark.parametrize(("found", "joined"), [("m1", ""), ("m2", "m1"), ("", "m1")])
def test_an_engine_that_entered_or_left_a_cluster_is_refused(found: str, joined: str) -> None:
    engine = Engine(found)
    with pytest.raises(Refused, match="of a cluster"):
        ensure(cast("LxdClient", engine), Names("m4rk", joined), PoolWish())
    assert engine.asked == [()], "nothing is created"


def test_each_member_has_its_own_project_and_all_have_one_pool() -> None:
    names = [Names("m4rk", member) for member in ("", "m1", "m2")]
    assert len({each.project for each in names}) == 3
    assert len({each.pool for each in names}) == 1
