"""Published ports: ports of hosts that lead to ports of instances."""

from teraflock.api.call import Call
from teraflock.api.query import InProject, OfInstanceQuery
from teraflock.api.route import Routes, Scope
from teraflock.base.filling import filled
from teraflock.network.published_port.model import ShownPort
from teraflock.tenant.rules import Permission
from teraflock.wire.published_port import PublishedPortAnswer, PublishedPortList, PublishRequest

routes = Routes(
    "published ports", scope=Scope.PROJECT, read=Permission.NETWORK_READ, write=Permission.NETWORK_WRITE
)


@routes.get("/v1/published-ports")
def list_published_ports(call: Call, query: OfInstanceQuery) -> PublishedPortList:
    """List the published ports of a project, or of one instance."""
    found = call.nouns.published_ports.all(call.project, instance=query.instance)
    return PublishedPortList(items=tuple(map(published_port_answer, found)))


@routes.post(
    "/v1/published-ports",
    status=201,
    creates=True,
    locks=True,
    errors=("refused", "suspended", "quota_reached"),
)
def publish_port(call: Call, query: InProject, body: PublishRequest) -> PublishedPortAnswer:
    """Publish a TCP port of an instance on its host. Its security groups must allow the connections, too.

    A port that is published already is returned.
    """
    made = call.nouns.published_ports.publish(
        call.actor, call.project, body.instance, body.guest_port, body.port
    )
    return published_port_answer(made)


@routes.delete("/v1/published-ports/{id}", status=204)
def unpublish_port(call: Call, query: InProject, id: str) -> None:
    """Close a published port. Its connections are cut within two seconds."""
    call.nouns.published_ports.unpublish(call.actor, call.project, id)


def published_port_answer(shown: ShownPort) -> PublishedPortAnswer:
    return filled(PublishedPortAnswer, shown.published, instance=shown.instance, address=shown.host_address)
