"""Converters of subnets."""

from teraflock.base.filling import filled
from teraflock.network.ipv6 import six_network
from teraflock.network.model import SubnetView
from teraflock.wire.subnet import SubnetAnswer


def subnet_answer(view: SubnetView) -> SubnetAnswer:
    return filled(SubnetAnswer, view, ipv6_cidr=six_network(view.cidr))
