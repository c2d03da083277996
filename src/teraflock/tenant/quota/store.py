"""All SQL about the quotas of organisations. A project's quota is in its own row."""

from typing import Final

import msgspec

from teraflock.storage.database import Transaction
from teraflock.tenant.model import OrganisationId, OrganisationQuota

_decoder: Final = msgspec.json.Decoder(OrganisationQuota)


def name_and_quota(tx: Transaction, id: OrganisationId) -> tuple[str, OrganisationQuota]:
    row = tx.one("SELECT name, quota FROM organisation WHERE id = :id", id=id)
    assert row is not None, "a project belongs to an organisation"
    return row[0], _decoder.decode(row[1])


def lock_quota(tx: Transaction, id: OrganisationId, *, shared: bool) -> OrganisationQuota:
    """The organisation's quota. Until the transaction ends it cannot change and, unless it is shared, nobody else who
    locks it can use more of it.
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
    row = tx.one("SELECT COUNT(*) FROM project WHERE organisation_id = :id AND removed_at_us IS NULL", id=id)
    return int(row[0]) if row else 0
