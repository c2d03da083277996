"""Subnets as text."""

from typing import TYPE_CHECKING

from teraflock.words.table import Field, Fields

if TYPE_CHECKING:
    from teraflock.wire.subnet import SubnetAnswer


def fields() -> "Fields[SubnetAnswer]":
    return (
        Field("NETWORK", lambda each: each.network, flexible=True),
        Field("SUBNET", lambda each: each.name, flexible=True),
        Field("ADDRESSES", lambda each: each.cidr),
        Field("ACL", lambda each: each.acl or "-"),
        Field("INSTANCES", lambda each: str(len(each.instances)), right=True),
    )
