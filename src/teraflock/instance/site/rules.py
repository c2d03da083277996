"""Decides which open sites were removed. Pure."""

from collections.abc import Iterable, Mapping

from teraflock.instance.site.model import SiteRecord


def removed(opened: Mapping[str, SiteRecord], kept: Iterable[SiteRecord]) -> frozenset[str]:
    """Sites that were removed from the database and that this process has not closed yet."""
    names = {record.name for record in kept}
    return frozenset(name for name, record in opened.items() if record.is_kept and name not in names)
