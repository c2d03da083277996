"""Sets the labels of hosts. Launches can ask for labels; `zone` says which hosts are close to each other."""

from collections.abc import Mapping

from msgspec.structs import replace

from teraflock.fleet.label import store
from teraflock.fleet.label.rules import changed
from teraflock.fleet.model import Host
from teraflock.storage.database import Transaction
from teraflock.tenant.audit.service import Audit
from teraflock.tenant.model import Actor


def set_labels(
    tx: Transaction, audit: Audit, actor: Actor, host: Host, changes: Mapping[str, str | None]
) -> Host:
    """Set labels of a host, or remove those with the value None."""
    labels = changed(host.labels, changes)
    if labels == host.labels:
        return host
    store.replace_all(tx, host.id, labels)
    text = " ".join(f"{key}={value}" for key, value in sorted(labels.items()))
    audit.record(tx, actor, "host.label", host.id, name=host.name, labels=text)
    return replace(host, labels=labels)
