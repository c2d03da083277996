"""Providers and their terms."""

from typing import TYPE_CHECKING

from teraflock.client.noun import Noun

if TYPE_CHECKING:
    from teraflock.wire.provider import ProviderShape


class Providers(Noun):
    in_project = False

    def list(self, name: str = "") -> "tuple[ProviderShape, ...]":
        from teraflock.wire.provider import (
            ProviderShape,
        )  # imported here: a cold `tera ps` must not load the planner

        return self._get(tuple[ProviderShape, ...], "providers", name=name)

    def usable(self, project: str = "") -> tuple[str, ...]:
        """Where a project may rent machines. Default: the project of the client."""
        from teraflock.wire.provider import UsableProviders

        asked = project or self._transport.project
        return self._get(UsableProviders, "usable-providers", project=asked).items
