"""The series of instance types against what providers say about their machines."""

import gzip
import json
from importlib.resources import files
from typing import Any

from teraflock.catalog.cards import cards_by_id, table
from teraflock.catalog.names import resolve
from teraflock.catalog.providers import find_provider
from teraflock.catalog.retired import RetiredType, retired_on
from teraflock.catalog.series import all_series, series_of_provider


def _types_of_aws() -> dict[str, Any]:
    """The answer of EC2's DescribeInstanceTypes, as moto ships it."""
    path = files("moto") / "ec2" / "resources" / "instance_types.json.gz"
    types: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
    return types


def test_the_series_of_aws_have_the_gpus_that_ec2_describes() -> None:
    types = _types_of_aws()
    described = 0
    for series in series_of_provider("aws"):
        for name, each in types.items():
            if name.partition(".")[0].casefold() == series.series.casefold():
                for gpu in each.get("GpuInfo", {}).get("Gpus", ()):
                    found = resolve(gpu["Name"], gpu["MemoryInfo"]["SizeInMiB"])
                    assert found is not None, name
                    assert found.card is not None, name
                    assert found.card.family == series.gpus, name
                    described += 1
    assert described > 20


def test_series_name_known_providers_and_cards() -> None:
    families = {card.family for card in cards_by_id().values()}
    for series in all_series():
        assert find_provider(series.provider).id == series.provider
        assert series.gpus in families, series.series


def test_retired_types_have_a_source_and_leave_their_successors_alone() -> None:
    for row in table("retired.csv", RetiredType):
        assert row.source.startswith("https://")
        assert find_provider(row.provider).id == row.provider
    retired = (
        *("Standard_NC6", "Standard_NC24r_Promo", "NC12s_v2", "ND6s", "Standard_NV6", "Standard_NC6s_v3"),
        *("Standard_NC24rs_v3", "Standard_NV12s_v3", "Standard_NV4as_v4"),
    )
    for name in retired:
        assert retired_on("azure", name), name
    kept = (
        *("Standard_NC4as_T4_v3", "Standard_NC24ads_A100_v4", "Standard_ND96asr_v4", "Standard_ND40rs_v2"),
        *("Standard_NV6ads_A10_v5", "Standard_NC40ads_H100_v5"),
    )
    for name in kept:
        assert not retired_on("azure", name), name
    assert not retired_on("aws", "NC6")
