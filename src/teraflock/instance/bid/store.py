"""All SQL about preemptible instances and the results of auctions. Results are added and never changed."""

from collections.abc import Sequence
from typing import Final

from teraflock.instance.bid.model import Auction, AuctionPrice
from teraflock.instance.model import Instance
from teraflock.instance.states import ENDED
from teraflock.instance.store import COLUMNS, instances_from
from teraflock.storage.database import Transaction
from teraflock.storage.table import Table, among, in_list

_AUCTION: Final = Table("auction", Auction)
_PRICE: Final = Table("auction", AuctionPrice)
_PREEMPTIBLE: Final = f"preemptible <> '' AND phase NOT IN {among(ENDED)}"


def preemptible_in_all_projects(
    tx: Transaction, host_id: str = "", *, lock: bool = False
) -> tuple[Instance, ...]:
    """Preemptible instances, of one host or of all. `lock` keeps them as they are until the transaction ends."""
    of_host = " AND host_id = :host" if host_id else ""
    values = {"host": host_id} if host_id else {}
    sql = f"SELECT {COLUMNS} FROM instance WHERE {_PREEMPTIBLE} AND host_id IS NOT NULL{of_host} ORDER BY id"
    return instances_from(tx, tx.lock(sql, **values) if lock else tx.all(sql, **values))


def is_any_preemptible_in_all_projects(tx: Transaction) -> bool:
    return tx.one(f"SELECT 1 FROM instance WHERE {_PREEMPTIBLE} LIMIT 1") is not None


def add(tx: Transaction, auction: Auction) -> None:
    _AUCTION.add(tx, auction)


def last(tx: Transaction, host_id: str, gpu: str) -> Auction | None:
    """The result that applies now."""
    return _AUCTION.one(
        tx, "WHERE host_id = :host AND gpu = :gpu ORDER BY id DESC LIMIT 1", host=host_id, gpu=gpu
    )


def prices(
    tx: Transaction, *, region: str = "", gpus: Sequence[str] = (), before: str = "", limit: int
) -> tuple[AuctionPrice, ...]:
    """The published prices, newest first. They name no host and no bidder. `gpus`: only these models."""
    marks, values = in_list(gpus) if gpus else ("", {})
    of_gpus = f" AND gpu IN ({marks})" if gpus else ""
    return _PRICE.all(
        tx,
        f"WHERE (:region = '' OR region = :region){of_gpus}"
        " AND (:before = '' OR id < :before) ORDER BY id DESC LIMIT :limit",
        region=region,
        before=before,
        limit=limit,
        **values,
    )
