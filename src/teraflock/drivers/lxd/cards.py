"""The cards of this host: their libraries for guests, cleaning between projects, and slices."""

from collections.abc import Iterable
from pathlib import Path

from teraflock.drivers.lxd import guest, nvidia
from teraflock.drivers.lxd.hand_over import HandOver
from teraflock.drivers.lxd.rest import LxdClient
from teraflock.host.slicing import SliceNode, nodes_of_slices, slice_card
from teraflock.instance.driver import Machine
from teraflock.instance.engine_errors import EngineBusy


class LxdCards:
    def __init__(self, engine: LxdClient, driver_folder: Path | None, hand_over: HandOver | None) -> None:
        """`driver_folder` and `hand_over`: see `Lxd`."""
        self._engine = engine
        self._driver_folder = driver_folder
        self._hand_over = hand_over

    def keep_driver(self) -> None:
        """Copy the current GPU libraries: the driver may have been replaced while the host was down."""
        if self._driver_folder:
            nvidia.keep(self._driver_folder)
            nvidia.renew_graphics(self._driver_folder)

    def give(self, machine: Machine, has: Iterable[str] = ()) -> None:
        """Clean the machine's cards if another project used them. `has` are the slots that its guest uses now."""
        if self._hand_over and machine.gpus:
            self._hand_over.give(machine.gpus, machine.network.project_id, has=has)

    def of(self, machine: Machine) -> tuple[str, dict[str, tuple[SliceNode, ...]]]:
        """The folder with the GPU libraries, and the nodes of its slices. Empty if the engine provides them."""
        if not self._driver_folder or not machine.gpus:
            return "", {}
        folder = nvidia.keep(self._driver_folder, graphics=machine.graphics)
        return str(folder), nodes_of_slices(each.slot for each in machine.gpus)

    def divide(self, address: str, profiles: tuple[str, ...]) -> None:
        found = self._engine.get("instances", recursion=1)
        if any(each["status"] == "Running" and guest.uses_card(each, address) for each in found):
            raise EngineBusy("A running guest uses the card", hint="Stop it first")
        slice_card(address, profiles)
