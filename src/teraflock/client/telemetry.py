"""Readings of hosts and instances."""

from collections.abc import Sequence

from teraflock.client.noun import Noun
from teraflock.client.transport import path_of
from teraflock.wire.telemetry import (
    HostReadingAnswer,
    HostReadingList,
    InstanceReadingAnswer,
    InstanceReadingList,
    ReadingsAnswer,
)


class Telemetry(Noun):
    def hosts(self, ids: Sequence[str] = ()) -> tuple[HostReadingAnswer, ...]:
        """The last reading of own hosts, all or those with these ids. For operators."""
        return self._transport.get(path_of("host-readings"), HostReadingList, host=tuple(ids)).items

    def instances(self) -> tuple[InstanceReadingAnswer, ...]:
        """The last reading of every running instance of the project."""
        return self._get(InstanceReadingList, "instance-readings").items

    def of_host(self, ref: str, period: str = "hour") -> ReadingsAnswer:
        """`period` is `hour`, `day` or `month`."""
        return self._transport.get(path_of("hosts", ref, "readings"), ReadingsAnswer, period=period)

    def of_instance(self, ref: str, period: str = "hour") -> ReadingsAnswer:
        return self._get(ReadingsAnswer, "instances", ref, "readings", period=period)
