"""The instance type tells the variant of a GPU, or which part of it the machine has."""

import pytest

from teraflock.catalog.cards import cards_by_id, table
from teraflock.catalog.names import resolve
from teraflock.catalog.providers import all_providers
from teraflock.catalog.types import InstanceType, gpu_of_type


@pytest.mark.parametrize(
    ("provider", "instance_type", "name", "memory", "card", "share"),
    [
        ("lambda", "gpu_1x_h100_pcie", "H100", 81_920.0, "H100-PCIe", 1.0),
        ("lambda", "gpu_8x_h100_sxm5", "H100", None, "H100-SXM5", 1.0),
        ("cudo", "epyc-genoa-a100-pcie_1x2v4gb", "A100", 81_920.0, "A100-PCIe-80", 1.0),
        ("azure", "Standard_NC24ads_A100_v4", "A100-80GB", None, "A100-PCIe-80", 1.0),
        ("azure", "Standard_NC40ads_H100_v5", "H100", None, "H100-NVL", 1.0),
        ("azure", "Standard_NC6s_v3", "V100", None, "V100-PCIe", 1.0),
        ("azure", "Standard_NV4as_v4", "Radeon MI25", None, "MI25", 0.125),
        ("aws", "p5.48xlarge", "H100", None, "H100-SXM5", 1.0),
        ("aws", "p4de.24xlarge", "A100-80GB", None, "A100-SXM4-80", 1.0),
    ],
)
def test_the_type_names_the_variant(
    provider: str, instance_type: str, name: str, memory: float | None, card: str, share: float
) -> None:
    found = gpu_of_type(provider, instance_type, name, memory)
    resolved = resolve(found.name, found.memory_mib)
    assert resolved is not None
    assert (resolved.id, resolved.inferred, found.share) == (card, False, share)


@pytest.mark.parametrize(
    ("provider", "instance_type", "name"),
    [
        ("aws", "p5.48xlarge", "T4"),
        ("lambda", "gpu_8x_a100", "A100"),
        ("x", "sxmachine", "H100"),
        ("x", "", ""),
    ],
)
def test_a_type_never_changes_the_family(provider: str, instance_type: str, name: str) -> None:
    assert gpu_of_type(provider, instance_type, name, None).name == name


def test_the_table_names_cards_and_providers() -> None:
    for row in table("types.csv", InstanceType):
        assert row.gpu in cards_by_id()
        assert row.provider in {each.id for each in all_providers()}
        assert 0 < row.share <= 1
