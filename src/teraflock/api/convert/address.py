"""Converters of public addresses."""

from typing import Literal, cast

from teraflock.base.filling import filled
from teraflock.network.address.model import ShownAddress
from teraflock.wire.address import AddressAnswer


def address_answer(shown: ShownAddress) -> AddressAnswer:
    public, target = shown.public, shown.target
    return filled(
        AddressAnswer,
        public,
        target=target.name if target else "",
        target_kind=cast("Literal['instance', 'balancer', '']", target.kind if target else ""),
        private_address=(target.private or "") if target else "",
    )
