"""Converters of published ports."""

from teraflock.base.filling import filled
from teraflock.network.published_port.model import ShownPort
from teraflock.wire.published_port import PublishedPortAnswer


def published_port_answer(shown: ShownPort) -> PublishedPortAnswer:
    return filled(PublishedPortAnswer, shown.published, instance=shown.instance, address=shown.host_address)
