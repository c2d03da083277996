"""The engines there are, by the name of their site."""

from collections.abc import Iterable, Iterator

from teraflock.instance.driver import Capability, ComputeDriver, EngineDown


class Engines:
    def __init__(self, drivers: Iterable[ComputeDriver]) -> None:
        self._by_site = {driver.site: driver for driver in drivers}

    def __iter__(self) -> Iterator[ComputeDriver]:
        return iter(self._by_site.values())

    def at(self, site: str) -> ComputeDriver:
        """The engine of a site. A site whose engine was taken out of the settings is as one that does not answer."""
        if site not in self._by_site:
            raise EngineDown(f"No engine is set up for the site `{site}`", hint="See `tera doctor`")
        return self._by_site[site]

    def can(self, site: str, capability: Capability) -> bool:
        return site in self._by_site and capability in self._by_site[site].capabilities
