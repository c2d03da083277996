"""The client: all nouns of the API on one connection.

with Client("http://127.0.0.1:8372", key) as client:
    for instance in client.instances.list():
        print(instance.name, instance.state)
"""

import os
import time
from collections.abc import Callable
from typing import Self

from teraflock.client.account import Accounts
from teraflock.client.acl import Acls
from teraflock.client.address import Addresses
from teraflock.client.announcement import Announcements
from teraflock.client.audit import AuditLog
from teraflock.client.balancer import Balancers
from teraflock.client.bid import Bids
from teraflock.client.bill import Bills
from teraflock.client.billing import Billing
from teraflock.client.budget import Budgets
from teraflock.client.console import ConsoleAccess
from teraflock.client.credit import Credits
from teraflock.client.dataset import Datasets
from teraflock.client.estimate import Estimates
from teraflock.client.event import Events
from teraflock.client.gpu import Gpus
from teraflock.client.host import Hosts
from teraflock.client.image import Images
from teraflock.client.instance import Instances
from teraflock.client.invoice import Invoices
from teraflock.client.key import Keys
from teraflock.client.member import Members
from teraflock.client.network import Networks
from teraflock.client.offer import Offers
from teraflock.client.operator import Operator
from teraflock.client.organisation import Organisations
from teraflock.client.placement import Placements
from teraflock.client.plan import Plans
from teraflock.client.price import Prices
from teraflock.client.project import Projects
from teraflock.client.provider import Providers
from teraflock.client.published_port import PublishedPorts
from teraflock.client.purchase import Purchases
from teraflock.client.queue import Queue
from teraflock.client.quota import Quotas
from teraflock.client.quote import Quotes
from teraflock.client.rate import RateList
from teraflock.client.recommendation import Recommendations
from teraflock.client.run import Runs
from teraflock.client.security_group import SecurityGroups
from teraflock.client.shape import Shapes
from teraflock.client.site import Sites
from teraflock.client.snapshot import Snapshots
from teraflock.client.ssh_key import SshKeys
from teraflock.client.subnet import Subnets
from teraflock.client.telemetry import Telemetry
from teraflock.client.transport import Transport, path_of
from teraflock.client.volume import Volumes
from teraflock.wire.health import HealthAnswer
from teraflock.wire.whoami import WhoAmI


class Client:
    """Not thread-safe: use one client per thread."""

    def __init__(
        self,
        server: str,
        key: str,
        *,
        project: str = "",
        ca_file: str = "",
        pause: Callable[[float], None] = time.sleep,
        random_bytes: Callable[[int], bytes] = os.urandom,
        transport: Transport | None = None,
    ) -> None:
        """`server` is `http://host:port` or `https://…`; `ca_file` has additional certificates to trust.

        `transport` replaces the connection to a server.
        """
        transport = transport or Transport(
            server, key, project=project, ca_file=ca_file, pause=pause, random_bytes=random_bytes
        )
        self.transport = transport
        self.acls = Acls(transport)
        self.addresses = Addresses(transport)
        self.datasets = Datasets(transport)
        self.volumes = Volumes(transport)
        self.accounts = Accounts(transport)
        self.announcements = Announcements(transport)
        self.ssh_keys = SshKeys(transport)
        self.audit = AuditLog(transport)
        self.balancers = Balancers(transport)
        self.billing = Billing(transport)
        self.bills = Bills(transport)
        self.budgets = Budgets(transport)
        self.console = ConsoleAccess(transport)
        self.credits = Credits(transport)
        self.events = Events(transport)
        self.gpus = Gpus(transport)
        self.providers = Providers(transport)
        self.rates = RateList(transport)
        self.recommendations = Recommendations(transport)
        self.offers = Offers(transport)
        self.estimates = Estimates(transport)
        self.placements = Placements(transport)
        self.plans = Plans(transport)
        self.hosts = Hosts(transport)
        self.images = Images(transport)
        self.instances = Instances(transport)
        self.invoices = Invoices(transport)
        self.keys = Keys(transport)
        self.members = Members(transport)
        self.networks = Networks(transport)
        self.operator = Operator(transport)
        self.organisations = Organisations(transport)
        self.prices = Prices(transport)
        self.projects = Projects(transport)
        self.published_ports = PublishedPorts(transport)
        self.purchases = Purchases(transport)
        self.queue = Queue(transport)
        self.bids = Bids(transport)
        self.quotas = Quotas(transport)
        self.quotes = Quotes(transport)
        self.runs = Runs(transport)
        self.security_groups = SecurityGroups(transport)
        self.shapes = Shapes(transport)
        self.sites = Sites(transport)
        self.snapshots = Snapshots(transport)
        self.subnets = Subnets(transport)
        self.telemetry = Telemetry(transport)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.transport.close()

    def health(self) -> HealthAnswer:
        return self.transport.get(path_of("health"), HealthAnswer)

    def whoami(self) -> WhoAmI:
        """Who the key belongs to, and what it allows."""
        return self.transport.get(path_of("whoami"), WhoAmI)
