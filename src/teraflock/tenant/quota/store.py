"""All SQL for the quotas of organisations. The quota of a project is in the project's row."""

from typing import Final

import msgspec

from teraflock.storage.database import Transaction
from teraflock.storage.table import number
from teraflock.tenant.model import OrganisationId, OrganisationQuota

_decoder: Final = msgspec.json.Decoder(OrganisationQuota)


def name_and_quota(tx: Transaction, id: OrganisationId) -> tuple[str, OrganisationQuota]:
    row = tx.one("SELECT name, quota FROM organisation WHERE id = :id", id=id)
    assert row is not None, "a project belongs to an organisation"
    return row[0], _decoder.decode(row[1])


def lock_quota(tx: Transaction, id: OrganisationId, *, shared: bool) -> OrganisationQuota:
    """Lock the organisation's quota until the transaction ends. It cannot change meanwhile. Unless the lock is shared,
    no other transaction that locks it can use more of it.
    """
    lock = tx.lock_shared if shared else tx.lock
    rows = lock("SELECT quota FROM organisation WHERE id = :id", id=id)
    assert rows, "a project belongs to an organisation"
    return _decoder.decode(rows[0][0])


def set_quota(tx: Transaction, id: OrganisationId, quota: OrganisationQuota) -> None:
    tx.run(
        "UPDATE organisation SET quota = :quota WHERE id = :id",
        quota=msgspec.json.encode(quota, order="sorted").decode(),
        id=id,
    )


def count_projects(tx: Transaction, id: OrganisationId) -> int:
    return number(
        tx, "SELECT COUNT(*) FROM project WHERE organisation_id = :id AND removed_at_us IS NULL", id=id
    )
