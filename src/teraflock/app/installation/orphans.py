"""The health check of accounts at clouds: whether they have machines or things that no instance owns."""

from collections.abc import Sequence
from typing import Final

from teraflock.app.installation.health import Finding, ok, skipped, warning
from teraflock.base.errors import Forbidden, TeraflockError
from teraflock.base.money import amount_text
from teraflock.client import Client
from teraflock.wire.account import OrphanAnswer

CHECK: Final = "accounts"
SHOWN_MAX: Final = 5


def accounts(client: Client) -> Finding:
    """Ask the provider of each account for orphans. A broken account is already reported as a broken site."""
    try:
        names = [each.name for each in client.accounts.list()]
    except Forbidden:
        return skipped(CHECK, "for operators only")
    if not names:
        return skipped(CHECK, "none")
    silent: list[str] = []
    found: dict[str, Sequence[OrphanAnswer]] = {}
    for name in names:
        try:
            found[name] = client.accounts.orphans(name)
        except TeraflockError:
            silent.append(name)
    if left := {name: orphans for name, orphans in found.items() if orphans}:
        seen = "; ".join(f"{name}: {summary(orphans)}" for name, orphans in list(left.items())[:SHOWN_MAX])
        first = next(iter(left))
        return warning(
            CHECK, seen, f"`tera account show {first}` lists them, `tera account sweep {first}` deletes them"
        )
    if silent:
        return warning(
            CHECK, f"cannot be asked: {', '.join(silent[:SHOWN_MAX])}", f"`tera account check {silent[0]}`"
        )
    return ok(CHECK, f"{', '.join(names[:SHOWN_MAX])}: no orphans")


def summary(orphans: Sequence[OrphanAnswer]) -> str:
    """How many orphans of each kind, and what they cost together."""
    kinds = sorted({each.kind for each in orphans})
    counts = [(kind, sum(each.kind == kind for each in orphans)) for kind in kinds]
    costs: dict[str, int] = {}
    for each in orphans:
        if each.micros_per_hour:
            costs[each.currency] = costs.get(each.currency, 0) + each.micros_per_hour
    total = " and ".join(amount_text(micros, currency) for currency, micros in costs.items())
    listed = ", ".join(f"{count} {kind}{'s' * (count != 1)}" for kind, count in counts)
    return f"orphans: {listed}" + (f", {total} per hour" if total else "")
