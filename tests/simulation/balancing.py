"""Balancers in the simulation: a project of their own that creates, uses and deletes them at random.

It has its own chance, so that the other moves of a seed stay the same.
"""

from collections import Counter
from random import Random
from typing import TYPE_CHECKING

from teraflock.drivers.simulated.model import SimulatedBalancer
from teraflock.network.balancer.model import BalancerOrder
from teraflock.network.balancer.service import BalancerService, Hosting

if TYPE_CHECKING:
    from tests.simulation.cloud import Cloud

PROJECT = "edge"
NAMES = ("a", "b")
EVERY = 8
"""One turn of so many changes something."""


class Balancing:
    def __init__(self, cloud: "Cloud", seed: int) -> None:
        self._cloud = cloud
        self._chance = Random(seed)
        self.sent_bytes: Counter[str] = Counter()
        """By balancer."""

    def turn(self) -> None:
        """Something that tenants do, and perhaps traffic."""
        if self._chance.randrange(EVERY):
            return
        cloud, name = self._cloud, self._chance.choice(NAMES)
        site = cloud.engine_site
        hosting = Hosting(can=lambda each: each == site)
        service = BalancerService(cloud.database, cloud.clock, hosting, cloud.random_bytes)
        actor, project = cloud.actors[0], cloud.edge
        what = self._chance.choice(["create", "create", "send", "send", "delete"])
        if what == "create":
            order = BalancerOrder(name=name, port=80, label="app=web", publish=True)
            cloud.ask(lambda: service.create(actor, project, order))
        elif what == "delete":
            cloud.ask(lambda: service.delete(actor, project, name))
        else:
            self._send(self._chance.randrange(1 << 31))

    def _send(self, size: int) -> None:
        with self._cloud.world.read() as turn:
            running = [each.spec.id for each in turn.every(SimulatedBalancer) if each.running]
        for id in sorted(set(running)):
            copies = running.count(id)  # a lost host may still run a balancer that moved
            self.sent_bytes[id] += size * copies
            self._cloud.trouble.balancer_sends(id, size)

    def check(self) -> None:
        """No more is charged than was sent, and nothing else but traffic."""
        with self._cloud.database.read() as tx:
            read: dict[str, int] = dict(
                tx.all(
                    "SELECT instance_id, SUM(bytes - bytes_before) FROM meter_reading"
                    " WHERE instance_id LIKE 'lbr%' GROUP BY instance_id"
                )
            )
            others = tx.all("SELECT number FROM charge WHERE subject LIKE 'lbr%' AND micros <> egress_micros")
        assert others == []
        for id, count in read.items():
            assert int(count) <= self.sent_bytes[id], (id, count, self.sent_bytes[id])
        self._cloud.count["balancers that sent"] = len(read)
