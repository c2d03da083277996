"""Which sites share the networks of projects: the server's own machine and the hosts that joined it."""

from teraflock.instance.engines import Engines
from teraflock.instance.join import store as joins
from teraflock.network.balancer.store import hosts
from teraflock.network.fabric import FabricDriver
from teraflock.storage.database import Transaction


def linked_sites(tx: Transaction, engines: Engines) -> frozenset[str]:
    """Empty if no host joined. Of sites that did not join, only the first one is linked."""
    joined = {each.name for each in joins.joined(tx)}
    if not joined:
        return frozenset()
    able = {each.site for each in engines if isinstance(each, FabricDriver)}
    own = [each.site for each in hosts(tx) if each.site in able and each.site not in joined]
    return frozenset((joined & able) | set(own[:1]))
