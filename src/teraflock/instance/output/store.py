"""All SQL about the logs of commands, which outlive their instances for a while."""

from datetime import datetime

from teraflock.base.clock import microseconds
from teraflock.instance.model import InstanceId
from teraflock.storage.database import Transaction
from teraflock.storage.table import put_row


def put_output(tx: Transaction, instance: InstanceId, log: str) -> None:
    put_row(tx, "instance_output", "instance_id", instance_id=instance, log=log)


def remove_output(tx: Transaction, instance: InstanceId) -> None:
    tx.run("DELETE FROM instance_output WHERE instance_id = :id", id=instance)


def remove_outputs_of_gone_in_all_projects(tx: Transaction, before: datetime) -> int:
    """Remove the logs of instances that have been gone since then. Return their number."""
    return tx.run(
        "DELETE FROM instance_output WHERE instance_id IN"
        " (SELECT id FROM instance WHERE phase = 'gone' AND gone_at_us < :before)",
        before=microseconds(before),
    )


def output(tx: Transaction, instance: InstanceId) -> str | None:
    row = tx.one("SELECT log FROM instance_output WHERE instance_id = :id", id=instance)
    return row[0] if row else None
