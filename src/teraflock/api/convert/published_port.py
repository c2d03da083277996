"""Converters of published ports."""

from teraflock.network.published_port.model import ShownPort
from teraflock.wire.published_port import PublishedPortAnswer


def published_port_answer(shown: ShownPort) -> PublishedPortAnswer:
    return PublishedPortAnswer(
        id=shown.published.id,
        instance=shown.instance,
        guest_port=shown.published.guest_port,
        address=shown.host_address,
        port=shown.published.port,
        created_at=shown.published.created_at,
    )
