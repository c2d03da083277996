"""Loads the walls into the firewall of this host, keeps them there, and cuts what they forbid.

The first load of a process replaces the table; later loads change what differs. Another process may load too: the mark
in the table tells whether it still has what we loaded last. A process that starts checks every connection once, because
the last one may have been killed between a load and the cut.
"""

import re
import threading
from collections.abc import Collection, Iterable
from hashlib import sha256
from typing import Final

import msgspec

from teraflock.drivers.lxd import flows, netlink, nft
from teraflock.drivers.lxd import walls as tables
from teraflock.instance.engine_errors import EngineRefused
from teraflock.network.ipv6 import four
from teraflock.network.rules import PORT_FIRST, PORT_LAST, PUBLISHED_FIRST, PUBLISHED_LAST
from teraflock.network.walls import Walls, decide, is_ours, tightened

_ELEMENTS: Final = re.compile(r"elements = \{([^}]*)\}")


class Loaded(msgspec.Struct, frozen=True):
    walls: Walls
    compiled: tables.Compiled


class Enforcing:
    """The caller of `keep`, `is_intact` and `load` holds the lock of the host's firewall."""

    def __init__(self, table: str) -> None:
        self._table = table
        self._bridges: tuple[str, ...] = ()
        self._loaded: Loaded | None = None
        """What this process loaded last."""
        self._listing = ""
        """Digest of the table after that; empty: not read yet."""
        self._unchecked: set[str] | None = None
        """Addresses whose connections may be forbidden since the last check; None: all."""
        self._cutting = threading.Lock()

    def keep(self, bridges: Iterable[str]) -> bool:
        """Make the table cover these bridges, and repair it. Before the first load nothing passes."""
        self._bridges = tuple(bridges)
        damaged = self._loaded is not None and not self.is_intact()
        self._listing = ""
        if self._loaded is None or not damaged:
            return nft.run(tables.frame(self._table, self._bridges))
        self._unchecked = None
        return nft.run(tables.full(self._table, self._loaded.compiled, self._bridges))

    def is_intact(self) -> bool:
        """Check that the table exists and nobody else changed it."""
        found = nft.listing(self._table)
        if not found:
            return False
        digest = _digest(found)
        self._listing = self._listing or digest
        return digest == self._listing

    def load(self, wanted: Walls) -> None:
        before = self._loaded
        is_ours = before is not None and self._has(before.compiled.mark)
        if before is not None and is_ours and before.walls == wanted:
            return
        after = Loaded(wanted, tables.compiled(wanted))
        self._listing = ""
        if before is not None and is_ours:
            text = tables.changes(self._table, before.compiled, after.compiled)
            done = not text or nft.run(text)
        else:
            done = False
        if not done and not nft.run(tables.full(self._table, after.compiled, self._bridges)):
            raise EngineRefused(
                "The host's firewall rejected the security groups",
                hint="Install `nft` and make sure that root may use it",
            )
        self._loaded = after
        if before is None or not is_ours or self._unchecked is None:
            self._unchecked = None
        else:
            self._unchecked |= tightened(before.walls, wanted)

    def cut(self, own: Collection[str]) -> int:
        """End the connections that the walls forbid; how many. `own`: addresses of the host, which may do all."""
        with self._cutting:
            loaded, addresses = self._loaded, self._unchecked
            if loaded is None or addresses == set():
                return 0
            ways = Ways(loaded.walls)
            found = [
                flow
                for flow in flows.flows()
                if (addresses is None or not addresses.isdisjoint(map(four, flow.packet.ends)))
                and flow.packet.source not in own
                and flow.packet.target not in own
                and not (decide(loaded.walls, flow.packet).passes and ways.are_open(flow, own))
            ]
            flows.end(found)
            if self._loaded is loaded:
                self._unchecked = set()
            return len(found)

    def drop(self) -> None:
        nft.run(tables.remove(self._table))
        self._listing = ""

    def _has(self, mark: str) -> bool:
        return netlink.has_chain(self._table, mark)


class Ways:
    """Whether the ports and addresses of the host that a connection used still lead there."""

    def __init__(self, walls: Walls) -> None:
        self._ports = {each.port: each.address for each in walls.published}
        self._private = {each.public: each.private for each in walls.floating}

    def are_open(self, flow: flows.Flow, own: Collection[str]) -> bool:
        return self._leads_in(flow) and self._leads_out(flow, own)

    def _leads_in(self, flow: flows.Flow) -> bool:
        if flow.asked in self._private:
            return self._private[flow.asked] == flow.packet.target
        if PUBLISHED_FIRST <= flow.through <= PUBLISHED_LAST:
            return self._ports.get(flow.through) == flow.packet.target
        is_opened = PORT_FIRST <= flow.through <= PORT_LAST
        return is_opened or not (flow.asked and is_ours(flow.packet.target))

    def _leads_out(self, flow: flows.Flow, own: Collection[str]) -> bool:
        """What is hidden behind the host's own address may go on, also when the guest gets a public one."""
        if not flow.outer or flow.outer in own or not is_ours(flow.packet.source):
            return True
        return self._private.get(flow.outer) == flow.packet.source


def _digest(listing: str) -> str:
    """A digest in which only the order of rules matters: that of elements and chains depends on the past."""

    def in_order(found: re.Match[str]) -> str:
        return " ".join(sorted(each.strip() for each in found[1].split(",")))

    _, *blocks = re.split(r"^\t(?=chain|set|map)", _ELEMENTS.sub(in_order, listing), flags=re.MULTILINE)
    lines = ("\n".join(filter(None, map(str.strip, each.strip("}\n").splitlines()))) for each in blocks)
    return sha256("\n\n".join(sorted(lines)).encode()).hexdigest()
