"""Machine types of an account become offers of the catalog."""

from pathlib import Path

from teraflock.cli.offer.live import csv_of
from teraflock.offer.importers.own import read
from teraflock.offer.intake import Row
from teraflock.wire.site import MachineTypeAnswer

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
