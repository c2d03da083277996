"""Tasks of `bench.offers`. Each runs in a separate process and prints its figures as JSON.

`python -m bench.offer_tasks fill COUNT`, `warm`, `write FOLDER COUNT`, `compare FOLDER`. They use the database in
`TERA_HOME`.
"""

import json
import sys
from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

import msgspec

from bench import generate
from bench.processes import Fault, own_peak_bytes, own_resident_bytes
from teraflock.app.local import Local
from teraflock.base.clock import today
from teraflock.base.quantities import GIB
from teraflock.catalog.names import find_kinds
from teraflock.catalog.places import place_filter
from teraflock.offer import store
from teraflock.offer.model import Offer, PriceLimit, Query, Source
from teraflock.offer.question import store as question_store
from teraflock.offer.source import store as source_store
from teraflock.offer.words import OfferWords
from teraflock.storage.database import Transaction

if TYPE_CHECKING:
    from teraflock.offer.index.service import OfferIndex

WARM_UP: Final = 20
REPEATS: Final = 2_000
SECONDS_MAX: Final = 8.0  # per query: slow queries run less often, and the table shows how often
TURNS: Final = 5
LIMIT: Final = 50  # as in `tera offers`
EVERY: Final = 10**9
WORDS: Final = {
    "a100": OfferWords(gpu=("A100",)),
    "a100_filtered": OfferWords(
        gpu=("A100",), count="4+", ram_min="256", region=("us-",), mode=("on-demand",)
    ),
    "a100_price_max": OfferWords(gpu=("A100",), price_max="10"),
    "a100_per_gpu": OfferWords(gpu=("A100",), sort="price-per-gpu"),
    "unfiltered": OfferWords(),
}


def questions() -> dict[str, Query]:
    a100 = find_kinds("A100")
    return {
        "a100": Query(gpus=a100),
        "a100_filtered": Query(
            gpus=a100,
            count_min=4,
            ram_bytes_min=256 * GIB,
            places=place_filter(("us-",), (), ()),
            modes=("on-demand",),
        ),
        "a100_price_max": Query(gpus=a100, price_max=PriceLimit(10_000_000, "USD", "hour")),
        "a100_per_gpu": Query(gpus=a100, sort="price-per-gpu"),
        "unfiltered": Query(),
    }


def fill(count: int) -> dict[str, Any]:
    """Insert generated offers into the database in one transaction, as an import does."""
    began = perf_counter()
    for _ in generate.offers(count):
        pass
    making_seconds = perf_counter() - began
    with Local() as local:
        database = local.database(to_write=True)
        began = perf_counter()
        database.write(lambda tx: _write(tx, count, local))
        write_seconds = perf_counter() - began
        home = Path(local.home)
    return {
        "making_seconds": making_seconds,
        "write_seconds": write_seconds,
        "close_seconds": perf_counter() - began - write_seconds,
        "file_bytes": sum(file.stat().st_size for file in home.iterdir()),
    }


def _write(tx: Transaction, count: int, local: Local) -> None:
    number = source_store.next_import_number(tx)
    made = ((offer, offer.id, offer.since) for offer in generate.offers(count))
    source_store.add(tx, made, number)
    source_store.supersede(tx, generate.SOURCE, number, generate.AS_OF.isoformat())
    source = Source(
        name=generate.SOURCE,
        layout="teraflock",
        import_number=number,
        place="",
        checksum="",
        as_of=generate.AS_OF.isoformat(),
        imported_at=local.clock.now().isoformat(timespec="seconds"),
        offers=count,
        currencies=generate.CURRENCIES,
    )
    source_store.update_counts(tx, generate.SOURCE)
    source_store.put_source(tx, source)


def warm() -> dict[str, Any]:
    """Build an index of all offers in the database and query it."""
    empty_bytes = own_resident_bytes()
    from teraflock.offer.index.service import (
        OfferIndex,
    )  # imported here, so that numpy counts as memory of the index

    with Local() as local:
        on = today(local.clock)
        began = perf_counter()
        with local.database().read() as tx:
            index = OfferIndex(store.every(tx), local.rates, on)
        build_seconds = perf_counter() - began
        resident_bytes = own_resident_bytes()
        asked: dict[str, dict[str, Any]] = {
            name: {"seconds": _timed(partial(index.search, query, limit=LIMIT))}
            for name, query in questions().items()
        }
        peak_bytes = own_peak_bytes()
        with local.database().read() as tx:
            offers = source_store.catalog(tx).offers
            for name, query in questions().items():
                asked[name]["matched"] = question_store.summarise(tx, query, local.rates, on).matched
                stored = islice(question_store.search(tx, query, local.rates, on), LIMIT)
                if _ids(tuple(stored)) != _ids(index.search(query, limit=LIMIT)):
                    raise Fault(f"index and store give different answers to `{name}`")
        del index
    return {
        "offers": offers,
        "build_seconds": build_seconds,
        "empty_bytes": empty_bytes,
        "resident_bytes": resident_bytes,
        "peak_bytes": peak_bytes,
        "questions": asked,
        "served": served(),
    }


def served() -> dict[str, list[float]]:
    """Measure the same queries as `GET /v1/offers`: from the parsed request to the JSON."""
    from teraflock.offer.index.warm import WarmOffers
    from teraflock.wire.offer import shape_offer

    with Local() as local:
        rates = local.rates
        warm = WarmOffers(local.database, lambda: rates, local.clock)

        def ask(words: OfferWords) -> bytes:
            found = warm.answer(words, limit=LIMIT)
            shapes = [
                shape_offer(each, currency=found.currency, per=found.per, rates=found.rates, on=found.on)
                for each in found.offers
            ]
            return msgspec.json.encode(shapes)

        ask(OfferWords())
        warm.settle()
        times = {name: _timed(partial(ask, words)) for name, words in WORDS.items()}
        warm.close()
    return times


def compare(folder: Path) -> dict[str, Any]:
    """Read the files that gpuhunt reads, and query every A100, cheapest first, then every card.

    Querying each card in turn makes caching the last answer useless.
    """
    from teraflock.offer.imports import import_offers
    from teraflock.offer.index.service import OfferIndex
    from teraflock.offer.tally import Origin

    origin = Origin(
        source="gpuhunt", layout="gpuhunt", path=folder, day_of=lambda file: generate.AS_OF.isoformat()
    )
    with Local() as local:
        import_offers(local.database(to_write=True), local.rates, local.clock, origin)
        with local.database().read() as tx:
            of_folder = [offer for offer in store.every(tx) if offer.source == origin.source]
    index = OfferIndex(of_folder, local.rates, today(local.clock))
    cards = [Query(gpus=find_kinds(name)) for name in sorted({offer.gpu_name for offer in of_folder})]
    query = questions()["a100"]
    found = index.search(query, limit=len(of_folder))
    return {
        "offers": len(of_folder),
        "prices": [_usd_per_hour(offer) for offer in found],
        "all_seconds": _timed(partial(index.search, query, limit=len(found))),
        "first_seconds": _timed(partial(index.search, query, limit=LIMIT)),
        "cards": len(cards),
        "found_in_turn": sum(len(index.search(each, limit=len(of_folder))) for each in cards),
        "turn_seconds": [_turn(index, cards) for _ in range(TURNS)],
    }


def _turn(index: "OfferIndex", cards: Sequence[Query]) -> float:
    began = perf_counter()
    for each in cards:
        index.search(each, limit=EVERY)
    return (perf_counter() - began) / len(cards)


def _usd_per_hour(offer: Offer) -> float:
    assert offer.quoted is not None
    return offer.quoted.micros / 1_000_000


def _ids(offers: tuple[Offer, ...]) -> list[int]:
    return [offer.id for offer in offers]


def _timed(ask: Callable[[], object]) -> list[float]:
    """Return the time of each of many calls, after a warm-up."""
    for _ in range(WARM_UP):
        ask()
    seconds: list[float] = []
    end = perf_counter() + SECONDS_MAX
    while len(seconds) < REPEATS and (began := perf_counter()) < end:
        ask()
        seconds.append(perf_counter() - began)
    return seconds


def main(task: str, *words: str) -> None:
    figures: dict[str, Any] = {}
    match task, words:
        case "fill", (count,):
            figures = fill(int(count))
        case "warm", ():
            figures = warm()
        case "write", (folder, count):
            generate.write_gpuhunt(Path(folder), int(count))
        case "compare", (folder,):
            figures = compare(Path(folder))
        case _:
            sys.exit(f"unknown task: {task} {' '.join(words)}")
    json.dump(figures, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
