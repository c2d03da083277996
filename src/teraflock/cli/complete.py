"""Shell completion of names: GPU models, providers, models of the zoo, precisions, regions, sources, currencies.

Completion must never fail, print or create files: a broken or missing catalog completes nothing.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress

import click

from teraflock.base.errors import TeraflockError

Completer = Callable[[click.Context, click.Parameter, str], list[str]]


def _completer(names: Callable[[], Iterable[str]]) -> Completer:
    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
        start = incomplete.casefold()
        with suppress(TeraflockError, OSError, ValueError):
            return sorted({name for name in names() if name.casefold().startswith(start)})
        return []

    return complete


def _gpus() -> Iterable[str]:
    from teraflock.catalog.cards import all_cards

    return (name for card in all_cards() for name in (card.family, card.id))


def _families() -> Iterable[str]:
    from teraflock.catalog.cards import families

    return families()


def _providers() -> Iterable[str]:
    from teraflock.catalog.providers import all_providers

    return (each.id for each in all_providers())


def _models() -> Iterable[str]:
    from teraflock.workload.zoo import known_names

    return known_names()


def _precisions() -> Iterable[str]:
    from teraflock.workload.model import PRECISIONS

    return PRECISIONS


def _regions() -> Iterable[str]:
    from teraflock.app.local import Local

    with Local() as local:
        return local.offers().regions() if local.has_database() else ()


def _sources() -> Iterable[str]:
    from teraflock.app.local import Local

    with Local() as local:
        return [source.name for source in local.offers().sources()] if local.has_database() else ()


def _currencies() -> Iterable[str]:
    from teraflock.app.local import Local

    with Local() as local:
        return local.rates.currencies()


complete_gpu = _completer(_gpus)
complete_family = _completer(_families)
complete_provider = _completer(_providers)
complete_model = _completer(_models)
complete_precision = _completer(_precisions)
complete_region = _completer(_regions)
complete_source = _completer(_sources)
complete_currency = _completer(_currencies)
