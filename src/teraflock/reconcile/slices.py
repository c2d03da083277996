"""The loop that divides cards as operators want it.

It looks at what hosts report, so a host that lost its slices in a reboot gets them again.
"""

import logging
from typing import Final

from teraflock.base.errors import TeraflockError, Unavailable
from teraflock.fleet.slicing import store
from teraflock.fleet.slicing.model import SlicingView
from teraflock.fleet.slicing.rules import may_divide
from teraflock.instance.driver import Capability
from teraflock.reconcile.surroundings import Surroundings

LOG: Final = logging.getLogger("teraflock.reconcile")


class SliceLoop:
    def __init__(self, around: Surroundings) -> None:
        self._around = around

    def turn(self) -> None:
        with self._around.database.read() as tx:
            found = store.views(tx)
        for view in filter(may_divide, found):
            self._divide(view)

    def _divide(self, view: SlicingView) -> None:
        slicing = view.slicing
        if not self._around.engines.can(view.site, Capability.SLICES):
            self._refuse(view, "The engine of this host cannot divide cards")
            return
        try:
            self._around.engines.at(view.site).slice_card(view.host, slicing.address, slicing.profiles)
        except Unavailable as error:
            LOG.warning("%s: cannot divide %s yet: %s", view.host, slicing.address, error.sentence)
        except TeraflockError as error:
            self._refuse(view, error.sentence)

    def _refuse(self, view: SlicingView, reason: str) -> None:
        LOG.warning("%s: cannot divide %s: %s", view.host, view.slicing.address, reason)
        self._around.database.write(lambda tx: store.note_problem(tx, view.slicing, reason))
