"""Opens a site of this kind."""

from typing import Final

from teraflock.drivers._template.driver import TemplateDriver
from teraflock.drivers.opening import DriverKind, Opening


def _open(opening: Opening) -> TemplateDriver:
    return TemplateDriver(
        opening.name,
        opening.mark,
        opening.clock,
        url=opening.options.get("url", ""),
        key=opening.secret("key"),
    )


DRIVER: Final = DriverKind(
    summary="A cloud that rents out machines",
    options={"url": "URL of the cloud's API", "key": "The account's API key"},
    secrets=frozenset({"key"}),
    open=_open,
)
