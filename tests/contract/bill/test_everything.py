"""One bill with everything that is charged: the proof holds while instances wait for cards and volumes stay."""

from datetime import UTC, datetime
from pathlib import Path

from tests.faults.data_installation import DataInstallation
from tests.unit.bill.world import RATES

from teraflock.base.clock import FixedClock
from teraflock.base.quantities import GIB
from teraflock.bill.service import BillService
from teraflock.bill.verify.service import verify
from teraflock.drivers.simulated.world import MemoryWorld
from teraflock.instance.bid.rules import NOTICE, REST
from teraflock.instance.model import Instance
from teraflock.instance.orders import Order, ShapeWish
from teraflock.instance.states import Phase
from teraflock.network.balancer.model import BalancerOrder
from teraflock.reconcile.traffic import TrafficLoop
from teraflock.storage.database import Database

BOOK = """\
- from: 2026-01-01
  currency: USD
  gpu: {V100: {on-demand: 3/hour, spot: 1/hour}}
  vcpu: {on-demand: 0.02/hour, spot: 0.01/hour}
  disk: 0.1/month
  snapshot: 0.05/month
  data: 0.03/month
  egress: 0.05
  minimum: 600 seconds
"""
CARD = ShapeWish(gpu="V100")


class Shop:
    def __init__(self, database: Database, folder: Path) -> None:
        self.clock = FixedClock(datetime(2026, 11, 16, 9, 0, tzinfo=UTC))
        self.installation = DataInstallation(database, MemoryWorld(), self.clock, folder)
        self.bills = BillService(database, self.clock, RATES, self.installation.random_bytes)
        self.bills.prices.take(BOOK, name="prices.yaml", member="mem")
        self.traffic = TrafficLoop(self.installation.workers[0].around)

    def launch(self, name: str, **more: object) -> None:
        tenant = self.installation.tenant
        order = Order(name=name, shape=CARD, **more)  # type: ignore[arg-type]
        self.installation.service.launch_or_queue(tenant.actor, tenant.project, order)

    def pass_time(self, seconds: float, step: float = 5) -> None:
        for _ in range(max(1, round(seconds / step))):
            self.installation.workers[0].look()
            self.installation.turn(step)
            self.traffic.turn()
            self.bills.turn()

    def seen(self, name: str) -> Instance:
        return self.installation.service.view(self.installation.tenant.project.id, name).instance


def test_bill_with_everything_is_proven(database: Database, tmp_path: Path) -> None:
    shop = Shop(database, tmp_path)
    installation, tenant = shop.installation, shop.installation.tenant
    volumes = installation.service.volumes
    installation.push("corpus", {"a": b"hello" * 1000})
    volumes.create(tenant.actor, tenant.project, "disk", 10 * GIB)
    for number in range(3):
        shop.launch(f"busy-{number}")
    shop.launch("cheap", mode="bid", bid_micros_per_hour=2_000_000, data=("corpus",), volumes=("disk",))
    order = BalancerOrder(name="front", port=80, target_port=80, instances=("busy-0",))
    balancer = installation.balancers.create(tenant.actor, tenant.project, order).balancer
    shop.pass_time(30)
    before = shop.seen("cheap")
    assert (before.phase, len(before.volumes)) == (Phase.RUNNING, 1)
    installation.trouble.balancer_sends(balancer.id, 3 * GIB)
    volumes.snapshot(tenant.actor, tenant.project, "disk", "one")
    shop.launch("urgent")
    shop.pass_time(NOTICE.total_seconds() + 40)
    assert (shop.seen("cheap").phase, shop.seen("urgent").phase) == (Phase.STOPPED, Phase.RUNNING)
    assert volumes.volume(tenant.project, "disk").volume.state == "attached", (
        "it keeps its volume while it waits"
    )
    installation.service.delete(tenant.actor, tenant.project, "urgent")
    shop.pass_time(REST.total_seconds() + 60)
    after = shop.seen("cheap")
    assert after.phase == Phase.RUNNING
    assert (after.host_id, after.address) == (before.host_id, before.address)
    assert (after.volumes, after.spec.data) == (before.volumes, before.spec.data)
    installation.balancers.delete(tenant.actor, tenant.project, "front")
    for name in ("cheap", "busy-0", "busy-1", "busy-2"):
        installation.service.delete(tenant.actor, tenant.project, name)
    shop.pass_time(60)
    volumes.delete(tenant.actor, tenant.project, "disk")
    installation.datasets.delete(tenant.actor, tenant.project, "corpus")
    shop.pass_time(3 * 86_400, step=21_600)
    verdict = verify(database)
    assert verdict.faults == ()
    charged = {each.charge.subject.held.name for each in shop.bills.lines(tenant.project.id, "2026-11")}
    assert charged >= {"cheap", "busy-0", "urgent", "volume disk", "data corpus", "balancer front"}
