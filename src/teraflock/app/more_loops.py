"""The loops of a server beside those of instances and hosts, each with its interval."""

import threading
from datetime import timedelta
from typing import Final

from teraflock.api.services import Nouns
from teraflock.app.settings import Settings
from teraflock.app.vault import FileVault
from teraflock.bill.floors import card_floors
from teraflock.fleet.telemetry.rules import FINE_SECONDS
from teraflock.reconcile.accounts import AccountLoop
from teraflock.reconcile.balancers import BalancerLoop
from teraflock.reconcile.bids import BidLoop
from teraflock.reconcile.bills import BillLoop
from teraflock.reconcile.copying import CopyLoop
from teraflock.reconcile.loops import Loops
from teraflock.reconcile.organisations import OrganisationLoop
from teraflock.reconcile.queue import QueueLoop
from teraflock.reconcile.telemetry import TelemetryLoop
from teraflock.reconcile.traffic import TrafficLoop
from teraflock.reconcile.volume_copies import VolumeCopyLoop

BILLS_SECONDS: Final = 2.0
ORGANISATIONS_SECONDS: Final = 2.0
BALANCERS_SECONDS: Final = 1.0
COPIES_SECONDS: Final = 20.0
VOLUME_COPIES_SECONDS: Final = 5.0
ACCOUNTS_SECONDS: Final = 30.0
QUEUE_SECONDS: Final = 2.0
BIDS_SECONDS: Final = 1.0


def add_loops(loops: Loops, nouns: Nouns, vault: FileVault, copying: CopyLoop, settings: Settings) -> None:
    around = loops.around
    organisations = OrganisationLoop(around.database, nouns.tenants.organisations, nouns.instances)
    balancers = BalancerLoop(around, lambda sealed, id: vault.open(sealed, bound_to=id))
    bids = BidLoop(around, nouns.instances.queue, nouns.instances.bids, card_floors)
    loops.also("bills", BillLoop(nouns.bills, around.clock).turn, BILLS_SECONDS)
    loops.also("organisations", organisations.turn, ORGANISATIONS_SECONDS)
    loops.also("accounts", AccountLoop(around.database, around.clock, nouns.instances).turn, ACCOUNTS_SECONDS)
    loops.also("balancers", balancers.turn, BALANCERS_SECONDS, woken=threading.Event())
    loops.also("queue", QueueLoop(around, nouns.instances.queue).turn, QUEUE_SECONDS)
    loops.also("copies", copying.turn, COPIES_SECONDS)
    every = timedelta(minutes=settings.copy_minutes)
    volume_copies = VolumeCopyLoop(around, every, worker=loops.worker)
    loops.also("volume copies", volume_copies.turn, VOLUME_COPIES_SECONDS)
    loops.also("bids", bids.turn, BIDS_SECONDS)
    loops.also("traffic", TrafficLoop(around).turn, settings.traffic_seconds)
    loops.also("telemetry", TelemetryLoop(around).turn, float(FINE_SECONDS))
