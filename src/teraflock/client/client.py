"""All nouns on one connection.

with Client("http://127.0.0.1:8372", key) as client:
    for instance in client.all_instances():
        print(instance.name, instance.state)
"""

from teraflock.client.bills import Bills
from teraflock.client.events import Events
from teraflock.client.hosts import Hosts
from teraflock.client.images import Images
from teraflock.client.instances import Instances
from teraflock.client.operator import Operator
from teraflock.client.planner import Planner
from teraflock.client.tenants import Tenants


class Client(Instances, Images, Hosts, Tenants, Bills, Events, Operator, Planner):
    """Used by one thread at a time."""
