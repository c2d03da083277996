"""All SQL about the labels of hosts."""

from collections import defaultdict
from collections.abc import Mapping

from teraflock.fleet.model import HostId
from teraflock.storage.database import Transaction
from teraflock.storage.table import add_row


def by_host(tx: Transaction, only: HostId | None = None) -> Mapping[str, Mapping[str, str]]:
    """The labels of all hosts, or of one, by the id of the host."""
    narrowed, values = (" WHERE host_id = :only", {"only": only}) if only else ("", {})
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for host_id, key, value in tx.all(
        f"SELECT host_id, key, value FROM host_label{narrowed} ORDER BY host_id, key", **values
    ):
        found[host_id][key] = value
    return found


def replace_all(tx: Transaction, id: HostId, labels: Mapping[str, str]) -> None:
    tx.run("DELETE FROM host_label WHERE host_id = :id", id=id)
    for key, value in labels.items():
        add_row(tx, "host_label", host_id=id, key=key, value=value)
