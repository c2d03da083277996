"""The engines and cloud accounts of a server, by site. Sites can be added while the server runs."""

from collections.abc import Iterable, Iterator, Mapping

from teraflock.instance.driver import Capability, ComputeDriver
from teraflock.instance.engine_errors import EngineDown
from teraflock.instance.site.model import SiteRecord


class Engines:
    def __init__(self, drivers: Iterable[ComputeDriver], *, for_all: Iterable[str] = ()) -> None:
        """`for_all` has the sites at which every tenant may rent machines."""
        self._by_site = {driver.site: driver for driver in drivers}
        self.for_all = frozenset(for_all)
        self.records: Mapping[str, SiteRecord] = {}
        """How each site was defined."""
        self.broken: Mapping[str, str] = {}
        """Sites that could not be opened, and why."""

    def __iter__(self) -> Iterator[ComputeDriver]:
        return iter(tuple(self._by_site.values()))

    def __contains__(self, site: object) -> bool:
        return site in self._by_site

    def put(self, driver: ComputeDriver, record: SiteRecord, *, for_all: bool = False) -> None:
        """Add a site, or replace it."""
        self._by_site = {**self._by_site, driver.site: driver}
        self.records = {**self.records, driver.site: record}
        self.broken = {name: why for name, why in self.broken.items() if name != driver.site}
        self.for_all = self.for_all | {driver.site} if for_all else self.for_all - {driver.site}

    def note_broken(self, record: SiteRecord, problem: str) -> None:
        self.records = {**self.records, record.name: record}
        self.broken = {**self.broken, record.name: problem}

    def drop(self, site: str) -> None:
        """Remove a site. Its instances are then like those of a site that does not answer."""
        self._by_site = {name: driver for name, driver in self._by_site.items() if name != site}
        self.records = {name: record for name, record in self.records.items() if name != site}
        self.broken = {name: why for name, why in self.broken.items() if name != site}
        self.for_all -= {site}

    @property
    def reality(self) -> str:
        """`real` if all sites are real, `simulated` if none is, otherwise `mixed`."""
        simulated = {driver.simulated for driver in self}
        return "mixed" if len(simulated) == 2 else "simulated" if True in simulated else "real"

    def at(self, site: str) -> ComputeDriver:
        """The driver of a site. Raise `EngineDown` if the site was removed from the settings."""
        if site not in self._by_site:
            raise EngineDown(
                f"The site `{site}` is not set up", hint="See `tera site list` and `tera doctor`"
            )
        return self._by_site[site]

    def can(self, site: str, capability: Capability) -> bool:
        return site in self._by_site and capability in self._by_site[site].capabilities
