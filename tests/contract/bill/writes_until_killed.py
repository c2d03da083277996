"""Meters and charges in its own process until it is killed."""

import sys
from datetime import timedelta

from tests.unit.bill.world import START

from teraflock.base.clock import FixedClock
from teraflock.bill.biller import Biller
from teraflock.meter.service import MeterService
from teraflock.storage.open import open_database


def main(address: str) -> None:
    clock = FixedClock(START + timedelta(days=40))
    database = open_database(address, clock)
    meter, biller = MeterService(database, clock), Biller(database, clock)
    print("ready", flush=True)
    while True:
        done = meter.turn(limit=3) + biller.turn(limit=2) or biller.close_days(grace_us=0)
        print(done, flush=True)
        if not done:
            print("done", flush=True)
            sys.stdin.read()


if __name__ == "__main__":
    main(sys.argv[1])
