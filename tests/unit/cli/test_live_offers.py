"""Machine types of an account become offers of the catalog."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from teraflock.cli.offer.live import _nothing_new, csv_of, fresh_sites
from teraflock.offer.importers.own import read
from teraflock.offer.intake import Row
from teraflock.wire.site import MachineTypeAnswer

NOW = datetime(2026, 11, 18, 12, tzinfo=UTC)
TYPE = MachineTypeAnswer(
    name="gpu_1x_a10", region="us-east-1", gpu="a10", gpus=1, vcpus=30, ram_bytes=200 << 30, disk_bytes=1400 << 30,
    prices_micros_per_hour={"on-demand": 750_000, "spot": 250_001}, currency="USD",
)  # fmt: skip


def test_types_are_written_in_the_format_of_the_importer(tmp_path: Path) -> None:
    path = tmp_path / "lambda.csv"
    path.write_text(csv_of("lambda", [TYPE, TYPE], "2026-11-16"))
    rows = list(read(path, lambda: None, lambda _: ""))
    assert [isinstance(each, Row) for each in rows] == [True, True], (
        "two accounts with the same types give one offer"
    )
    found = {each.mode: each for each in rows if isinstance(each, Row)}
    assert (found["spot"].price_micros, found["on-demand"].price_micros) == (250_001, 750_000)
    assert (found["spot"].instance_type, found["spot"].region, found["spot"].as_of) == (
        "gpu_1x_a10",
        "us-east-1",
        "2026-11-16",
    )


@pytest.mark.parametrize(
    ("minutes", "is_stock", "is_fresh"),
    [(1, True, True), (16, True, False), (16, False, True), (25 * 60, False, False), (None, False, False)],
)
def test_what_a_provider_said_long_ago_is_not_imported_as_of_today(
    minutes: int | None, is_stock: bool, is_fresh: bool
) -> None:
    """An account that no longer answers keeps its machine types, with the time at which they were read."""
    at = None if minutes is None else NOW - timedelta(minutes=minutes)
    site = SimpleNamespace(name="acct", types=(TYPE,), types_at=at)
    assert bool(fresh_sites([site], NOW, is_stock=is_stock)) == is_fresh  # type: ignore[list-item]
    refused = _nothing_new("lambda", [site])  # type: ignore[list-item]
    assert ("last said at 2026-11-1" in refused.sentence) == (at is not None)
