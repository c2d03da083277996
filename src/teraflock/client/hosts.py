"""Hosts, for whoever runs the house."""

from typing import Final

from teraflock.client.transport import Transport, pages, path_of
from teraflock.wire.host import HostAnswer, HostChange, HostPage

PAGE: Final = 200


class Hosts(Transport):
    def hosts(self, *, after: str = "", limit: int = PAGE) -> HostPage:
        return self.get(path_of("hosts"), HostPage, after=after, limit=limit)

    def all_hosts(self) -> list[HostAnswer]:
        return pages(lambda after: self.hosts(after=after))

    def host(self, ref: str) -> HostAnswer:
        return self.get(path_of("hosts", ref), HostAnswer)

    def change_host(self, ref: str, change: HostChange) -> HostAnswer:
        return self.act("PATCH", path_of("hosts", ref), HostAnswer, change)
