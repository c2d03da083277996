"""Readings of hosts and instances."""

from teraflock.client.noun import Noun
from teraflock.client.transport import path_of
from teraflock.wire.telemetry import (
    HistoryAnswer,
    HostReadingAnswer,
    HostReadingList,
    InstanceReadingAnswer,
    InstanceReadingList,
)


class Telemetry(Noun):
    def hosts(self) -> tuple[HostReadingAnswer, ...]:
        """The last reading of every own host, for operators."""
        return self._transport.get(path_of("host-readings"), HostReadingList).items

    def instances(self) -> tuple[InstanceReadingAnswer, ...]:
        """The last reading of every running instance of the project."""
        return self._get(InstanceReadingList, "instance-readings").items

    def of_host(self, ref: str, period: str = "hour") -> HistoryAnswer:
        """`period` is `hour`, `day` or `month`."""
        return self._transport.get(path_of("hosts", ref, "readings"), HistoryAnswer, period=period)

    def of_instance(self, ref: str, period: str = "hour") -> HistoryAnswer:
        return self._get(HistoryAnswer, "instances", ref, "readings", period=period)
