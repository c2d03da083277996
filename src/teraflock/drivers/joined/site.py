"""Opens a site on a host that joined this installation."""

from typing import TYPE_CHECKING, Final, cast

from teraflock.base.errors import Refused
from teraflock.drivers.opening import DriverKind, Opening

if TYPE_CHECKING:
    from teraflock.instance.driver import ComputeDriver

PORT: Final = 8732
"""The port of the host program, unless another one was given."""


def _open(opening: Opening) -> "ComputeDriver":
    from teraflock.drivers.joined.authority import Authority, client_context
    from teraflock.drivers.joined.calling import HostEndpoint, Links
    from teraflock.drivers.joined.driver import JoinedDriver

    if opening.derive is None:
        raise Refused(f"The site `{opening.name}` needs the keys of this installation")
    to = HostEndpoint(
        name=opening.name,
        address=opening.options.get("address", ""),
        port=opening.option("port", PORT, int),
        fingerprint=opening.options.get("fingerprint", ""),
    )
    links = Links(to, client_context(Authority(opening.derive).server), now=opening.clock.now)
    return cast("ComputeDriver", JoinedDriver(opening.name, links))  # its methods are made from the protocol


DRIVER: Final = DriverKind(
    summary="LXD or Incus on another machine, which joined with `tera host join`",
    options={
        "address": "Address of the host",
        "port": f"Port of the host program. Default: {PORT}",
        "fingerprint": "SHA-256 of the host's certificate",
    },
    open=_open,
    added_by="tera host add",
)
