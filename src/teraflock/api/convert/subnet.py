"""Converters of subnets."""

from teraflock.network.ipv6 import six_network
from teraflock.network.model import SubnetView
from teraflock.wire.subnet import SubnetAnswer


def subnet_answer(view: SubnetView) -> SubnetAnswer:
    return SubnetAnswer(
        id=view.id,
        name=view.name,
        network=view.network,
        cidr=view.cidr,
        ipv6_cidr=six_network(view.cidr),
        acl=view.acl,
        instances=view.instances,
    )
