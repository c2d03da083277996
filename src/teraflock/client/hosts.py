"""Hosts, for whoever runs the house."""

from typing import Final

from teraflock.client.transport import Transport, pages, path_of
from teraflock.wire.host import HostAnswer, HostChange, HostPage

PAGE: Final = 200


class Hosts(Transport):
    def hosts(self, *, after: str = "", limit: int = PAGE, kind: str = "own") -> HostPage:
        """`kind` is `own`, `rented` or `all`."""
        query = {"after": after, "limit": limit, "kind": kind}
        return self._decoded(self.request("GET", path_of("hosts"), query=query), HostPage)

    def all_hosts(self, *, kind: str = "own") -> list[HostAnswer]:
        return pages(lambda after: self.hosts(after=after, kind=kind))

    def host(self, ref: str) -> HostAnswer:
        return self.get(path_of("hosts", ref), HostAnswer)

    def change_host(self, ref: str, change: HostChange) -> HostAnswer:
        return self.act("PATCH", path_of("hosts", ref), HostAnswer, change)
