"""Public addresses: from the operator's pool to instances and balancers."""

from typing import Literal, cast

from teraflock.api.call import Call
from teraflock.api.query import InProject
from teraflock.api.route import Routes, Scope
from teraflock.base.filling import filled
from teraflock.network.address.model import ShownAddress
from teraflock.tenant.rules import Permission
from teraflock.wire.address import AddressAnswer, AddressList, AddressRequest, AddressTargetRequest

routes = Routes(
    "addresses", scope=Scope.PROJECT, read=Permission.NETWORK_READ, write=Permission.NETWORK_WRITE
)


@routes.get("/v1/addresses")
def list_addresses(call: Call, query: InProject) -> AddressList:
    """List the public addresses of a project."""
    return AddressList(items=tuple(map(address_answer, call.nouns.addresses.all(call.project))))


@routes.post(
    "/v1/addresses", status=201, creates=True, locks=True, errors=("refused", "suspended", "quota_reached")
)
def create_address(call: Call, query: InProject, body: AddressRequest) -> AddressAnswer:
    """Take a public address from the pool. It is charged until you release it."""
    return address_answer(call.nouns.addresses.create(call.actor, call.project, body.address))


@routes.put("/v1/addresses/{address}/target", locks=True, errors=("refused", "ambiguous_name"))
def attach_address(call: Call, query: InProject, address: str, body: AddressTargetRequest) -> AddressAnswer:
    """Let a public address lead to an instance or a balancer. Security groups apply as to any connection."""
    return address_answer(call.nouns.addresses.attach(call.actor, call.project, address, body.target))


@routes.delete("/v1/addresses/{address}/target", locks=True)
def detach_address(call: Call, query: InProject, address: str) -> AddressAnswer:
    """Let a public address lead nowhere. The project keeps it, and its connections are cut."""
    return address_answer(call.nouns.addresses.detach(call.actor, call.project, address))


@routes.delete("/v1/addresses/{address}", status=204, locks=True)
def release_address(call: Call, query: InProject, address: str) -> None:
    """Give a public address back. Its connections are cut, and other tenants may get it."""
    call.nouns.addresses.release(call.actor, call.project, address)


def address_answer(shown: ShownAddress) -> AddressAnswer:
    public, target = shown.public, shown.target
    return filled(
        AddressAnswer,
        public,
        target=target.name if target else "",
        target_kind=cast("Literal['instance', 'balancer', '']", target.kind if target else ""),
        private_address=(target.private or "") if target else "",
    )
