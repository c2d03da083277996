"""Looking up GPU names, for queries and for imports."""

import csv
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teraflock.base.errors import UnknownName
from teraflock.base.quantities import GIB
from teraflock.catalog.cards import all_accelerators, all_aliases, all_cards, card, families
from teraflock.catalog.model import Alias, Card
from teraflock.catalog.names import MEMORY_TOLERANCE, find_cards, find_kinds, fits_variant, resolve

SEEDS = Path(__file__).parents[4] / "shared" / "seeds"
CATALOG_NAMES = (Path(__file__).parent / "accelerator_names.txt").read_text().splitlines()


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("V100", "V100-SXM2 V100-SXM2-32 V100-PCIe V100-PCIe-32"),
        ("V100 32G", "V100-SXM2-32 V100-PCIe-32"),
        ("V100-32GB", "V100-SXM2-32 V100-PCIe-32"),
        ("Tesla V100-SXM2-32GB", "V100-SXM2-32"),
        ("Tesla V100-PCIE-16GB", "V100-PCIe"),
        ("M40", "M40 M40-24"),
        ("M40 24GB", "M40-24"),
        ("A100-80GB", "A100-SXM4-80 A100-PCIe-80"),
        ("NVIDIA A100 80GB PCIe", "A100-PCIe-80"),
        ("A100 SXM", "A100-SXM4-40 A100-SXM4-80"),
        ("H200", "H200-SXM"),
        ("H200 SXM5", "H200-SXM"),
        ("H200 NVL", "H200-NVL"),
        ("NVIDIA H100 80GB HBM3", "H100-SXM5"),
        ("RTX 6000", "RTX6000"),
        ("Quadro RTX 6000", "RTX6000"),
        ("RTX 6000 Ada Generation", "RTX6000Ada"),
        ("RTX A6000", "A6000"),
        ("A6000", "A6000"),
        ("RTX 6000 96GB", "RTXPRO6000-Server RTXPRO6000-WS RTXPRO6000-MaxQ"),
        ("RTX PRO 6000", "RTXPRO6000-Server RTXPRO6000-WS RTXPRO6000-MaxQ"),
        ("NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", "RTXPRO6000-MaxQ"),
        ("RTX PRO 6000 PCIe", "RTXPRO6000-Server RTXPRO6000-WS RTXPRO6000-MaxQ"),
        ("A4000", "A4000"),
        ("P4000", "P4000"),
        ("Tesla A4000", "A4000"),
        ("A10", "A10"),
        ("A10 G", "A10G"),
        ("T4g", "T4G"),
        ("K40M", "K40"),
        ("V100T3", "V100-SXM2 V100-SXM2-32 V100-PCIe V100-PCIe-32"),
        ("T40", "P40"),
        ("4090", "RTX4090"),
        ("1080 ti", "GTX1080Ti"),
        ("GTX 1060", "GTX1060 GTX1060-laptop"),
        ("GeForce GTX 1060 (laptop)", "GTX1060-laptop"),
        ("B300 288GB", "B300"),
        ("GH200 480GB", "GH200-96"),
        ("A100 MIG 1g.5gb", "A100-SXM4-40 A100-PCIe-40"),
    ],
)
def test_a_query_finds_every_matching_variant(text: str, ids: str) -> None:
    assert [each.id for each in find_cards(text)] == ids.split()


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("A100-80GB", "A100-SXM4-80 A100-PCIe-80"),
        ("TPU-v5p", "TPU-v5p"),
        ("tpu-v5litepod-8", "TPU-v5e"),
        ("trainium", "Trainium"),
        ("Intel Gaudi 2", "Gaudi2"),
        ("TPU", "TPU TPU-v2 TPU-v3 TPU-v4 TPU-v5e TPU-v5p TPU-v6e"),
    ],
)
def test_a_query_finds_cards_and_accelerators(text: str, ids: str) -> None:
    assert find_kinds(text) == tuple(ids.split())


@pytest.mark.parametrize(
    "text",
    [
        "",
        "NVIDIA",
        "80GB",
        "V100 64GB",
        "V100 SXM4",
        "A100 Hopper",
        "V1000",
        "RTX 3050 laptop",  # another chip than the desktop card
        "RTX 4090 Foo",
        "4000",  # Quadro RTX 4000, RTX A4000, Quadro P4000 …
        "Gaudi 4",
        "A100 MIG 9g.99gb",
    ],
)
def test_no_word_is_ignored(text: str) -> None:
    with pytest.raises(UnknownName) as caught:
        find_kinds(text)
    assert caught.value.exit_code == 2
    assert caught.value.hint.endswith("`tera gpus` lists all of them")
    with pytest.raises(UnknownName):
        find_cards(text)
    assert resolve(text) is None


def test_an_unknown_name_gets_suggestions() -> None:
    with pytest.raises(UnknownName) as caught:
        find_cards("RTX 4095")
    assert "`RTX4090`" in caught.value.hint


@pytest.mark.parametrize(
    ("name", "memory_mib", "card_id", "inferred"),
    [
        ("V100", None, "V100-SXM2", True),
        ("V100", 16384, "V100-SXM2", True),
        ("V100", 32768, "V100-SXM2-32", True),
        ("V100-32GB", 32510, "V100-SXM2-32", True),
        ("Tesla V100-SXM2-32GB", None, "V100-SXM2-32", False),
        ("A100", None, "A100-SXM4-40", True),
        ("A100", 81920, "A100-SXM4-80", True),
        ("A100-80GB", None, "A100-SXM4-80", True),
        ("A100-80G-PCIe-NVLink", None, "A100-PCIe-80", False),
        ("H100", None, "H100-SXM5", True),
        ("H100", 81559, "H100-SXM5", True),
        ("H100", 95830, "H100-NVL", False),
        ("NVIDIA H100 PCIe", 81559, "H100-PCIe", False),
        ("H100-MEGA", 81920, "H100-SXM5", False),
        ("H100-NVLINK", 81920, "H100-SXM5", False),
        ("P100", 16384, "P100-PCIe", True),
        ("M40", None, "M40", True),
        ("M40", 22945, "M40-24", False),
        ("B300", 275040, "B300", False),
        ("B300", 276480, "B300", False),
        ("B300", 288 * 1024, "B300", False),
        ("A10G", 22888, "A10G", False),
        ("L40S", 45776, "L40S", False),
        ("RTX6000", 24576, "RTX6000", False),
        ("RTX6000", 98304, "RTXPRO6000-Server", True),
        ("RTX4060", 16380, "RTX4060Ti-16", True),
        ("RTX4070", 16376, "RTX4070TiSuper", True),
        ("RTX3060", 8192, "RTX3060-8", False),
        ("RTX3060", 12288, "RTX3060", False),
        ("RTXPRO4500-SE", None, "RTXPRO4500-Server", False),
        ("RTX PRO Server 6000", 98304, "RTXPRO6000-Server", False),
        ("RTX PRO 6000 96GB", 0, "RTXPRO6000-Server", True),
        ("T40", None, "P40", True),
        ("GTX 1060", None, "GTX1060", True),
        ("L4", 11444, "L4", False),  # half a card, which the count says and not the name
        ("V100", 131072, "V100-SXM2", True),  # the memory of the whole machine is ignored
    ],
)
def test_a_name_in_a_catalog_means_one_card(
    name: str, memory_mib: float | None, card_id: str, inferred: bool
) -> None:
    found = resolve(name, memory_mib)
    assert found is not None
    assert found.card == card(card_id)
    assert found.memory_bytes == card(card_id).memory_bytes
    assert found.inferred == inferred
    assert (found.share, found.chips, found.accelerator) == (1.0, 1, None)


@pytest.mark.parametrize(
    ("name", "memory_mib", "card_id", "share", "memory_gb"),
    [
        ("PRO-6000-MIG-24GB", None, "RTXPRO6000-Server", 1 / 4, 24),
        ("PRO-6000-MIG-48GB", 48 * 1024, "RTXPRO6000-Server", 1 / 2, 48),
        ("A100-SXM4-40GB MIG 1g.5gb", None, "A100-SXM4-40", 1 / 7, 5),
        ("A100-SXM4-80GB 3g.40gb", None, "A100-SXM4-80", 3 / 7, 40),
        ("H100 MIG 1g.10gb", None, "H100-SXM5", 1 / 7, 10),
        ("A30 MIG", 6 * 1024, "A30", 1 / 4, 6),
    ],
)
def test_a_part_of_a_card(
    name: str, memory_mib: float | None, card_id: str, share: float, memory_gb: int
) -> None:
    found = resolve(name, memory_mib)
    assert found is not None
    assert found.id == card_id
    assert found.share == pytest.approx(share, abs=1e-3)
    assert found.memory_bytes == memory_gb * GIB


@pytest.mark.parametrize(
    ("name", "accelerator_id", "chips"),
    [
        ("tpu-v2-8", "TPU-v2", 4),
        ("tpu-v3-32", "TPU-v3", 16),
        ("tpu-v4-8", "TPU-v4", 4),
        ("tpu-v5p-1024", "TPU-v5p", 512),
        ("tpu-v5litepod-1", "TPU-v5e", 1),
        ("tpu-v5litepod-256", "TPU-v5e", 256),
        ("tpu-v6e-8", "TPU-v6e", 8),
        ("TPU", "TPU", 1),
        ("Trainium", "Trainium", 1),
        ("Virtex UltraScale+ (VU47P)", "VU47P", 1),
        ("Qualcomm AI100", "AI100", 1),
    ],
)
def test_an_accelerator_and_the_number_of_chips_in_its_name(
    name: str, accelerator_id: str, chips: int
) -> None:
    found = resolve(name)
    assert found is not None
    assert (found.id, found.chips, found.card) == (accelerator_id, chips, None)
    assert found.accelerator is not None
    assert found.memory_bytes == found.accelerator.memory_bytes


def test_a_number_that_is_too_long_is_not_a_count() -> None:
    assert resolve("tpu-v4-" + "9" * 5000) is None


@pytest.mark.parametrize("name", CATALOG_NAMES)
def test_every_name_of_a_real_catalog_is_known(name: str) -> None:
    found = resolve(name)
    assert found is not None
    assert found.id in find_kinds(name)
    assert not name.startswith("tpu") or found.accelerator is not None


def test_the_real_catalog_has_258_names() -> None:
    assert len(set(CATALOG_NAMES)) == 258


@pytest.mark.parametrize("each", all_cards(), ids=lambda each: each.id)
def test_a_card_is_found_by_its_own_name_and_id(each: Card) -> None:
    by_name = resolve(each.name, each.memory_gb * 1024)
    assert by_name is not None
    assert by_name.card == each
    if each.usable_memory_mib:
        by_usable = resolve(each.name, each.usable_memory_mib)
        assert by_usable is not None
        assert by_usable.card == each
    assert each in find_cards(each.id)
    assert set(find_cards(each.family)) >= {each}
    assert fits_variant(each.family, each.memory_gb * 1024)


@pytest.mark.parametrize("each", all_aliases(), ids=lambda each: f"{each.alias} {each.memory_gb or ''}")
def test_every_alias_means_its_target(each: Alias) -> None:
    target = families().get(each.target) or (card(each.target),)
    memory_mib = None if each.memory_gb is None else each.memory_gb * 1024
    found = resolve(each.alias, memory_mib)
    assert found is not None
    assert found.card == target[0]
    assert found.inferred == (not each.sure or len(target) > 1)
    asked = each.alias if each.memory_gb is None else f"{each.alias} {each.memory_gb}GB"
    assert find_cards(asked) == target
    assert each.reason


@pytest.mark.parametrize(
    ("name", "memory_mib", "fits"),
    [
        ("A100", 40960, True),
        ("A100", 81251, True),
        ("A100", 163840, False),  # memory of two cards
        ("A100", 80, False),  # GiB
        ("RTX6000", 98304, True),
        ("RTX6000", 65536, False),
        ("A100-80GB", 40960, False),
        ("PRO-6000-MIG-24GB", 24576, True),
        ("PRO-6000-MIG-24GB", 98304, False),
        ("GAUDI2", 96 * 1024, True),
        ("GAUDI2", 96, False),
        ("no such card", 24576, False),
    ],
)
def test_fits_variant(name: str, memory_mib: float, fits: bool) -> None:
    assert fits_variant(name, memory_mib) == fits


SEED_NAMES = (
    "Tesla K40|Tesla M40|Tesla P40|Tesla P100|Tesla V100|FirePro S7150|Tesla P4|Tesla K40M|Tesla V100 32GB"
    "|RTX A6000|Quadro RTX 6000|Tesla V100 16GB|A10|Tesla T4|Tesla T40|GeForce RTX 3090|GeForce RTX 3080"
    "|GeForce RTX 3060 Ti|GeForce GTX 1080 Ti|A100|Tesla M60|Tesla K80|A10G|Quadro M4000|Quadro P4000"
    "|Quadro P5000|Quadro P6000|Quadro RTX 4000|Quadro RTX 5000|RTX A4000|RTX A5000|SG1|TPU"
    "|GeForce GTX 1060 (laptop)|GTX 1070|GTX 1080|RTX 2070|Intel SG1|RTX a 6000T2|p 5000T3"
)


@pytest.mark.parametrize("name", SEED_NAMES.split("|"))
def test_every_gpu_of_the_surveys_is_found(name: str) -> None:
    found = resolve(name)
    assert found is not None
    assert found.id in find_kinds(name)


@pytest.mark.skipif(not SEEDS.exists(), reason="the surveys are not available")
def test_the_surveys_have_no_other_gpus() -> None:
    with (SEEDS / "gpus.csv").open(newline="") as lines:
        names = {row["gpu"] for row in csv.DictReader(lines)}
    real = {name for name in names if not name.startswith("(")}
    assert real
    assert {name for name in real if resolve(name) is None} == set()


KNOWN_NAMES = st.sampled_from(
    [each.name for each in all_cards()]
    + [each.id for each in all_cards()]
    + [each.alias for each in all_aliases()]
    + [each.name for each in all_accelerators()]
    + [name for name in CATALOG_NAMES if not name.startswith("tpu")]
)
BRANDS = st.sampled_from(["", "NVIDIA", "Tesla", "GeForce", "Quadro", "AMD", "Radeon", "nvidia tesla"])
SEPARATORS = st.sampled_from([" ", "-", "_", "  ", " - "])


@given(KNOWN_NAMES, BRANDS, st.data())
def test_case_separators_and_brands_never_matter(name: str, brand: str, data: st.DataObject) -> None:
    words = re.split(r"[ _-]+", name)
    written = brand
    for word in words:
        written += data.draw(SEPARATORS) + data.draw(st.sampled_from([word, word.upper(), word.lower()]))
    assert find_kinds(written) == find_kinds(name)
    assert resolve(written) == resolve(name)


@given(KNOWN_NAMES)
def test_letters_and_digits_may_be_separated(name: str) -> None:
    apart = re.sub(r"(?<=[A-Za-z])(?=[0-9])|(?<=[0-9])(?=[A-Za-z])", " ", name)
    assert find_kinds(apart) == find_kinds(name)


@given(KNOWN_NAMES, st.floats(min_value=0.5, max_value=2e6))
def test_memory_selects_among_cards_and_never_excludes_all(name: str, memory_mib: float) -> None:
    plain, found = resolve(name), resolve(name, memory_mib)
    assert plain is not None
    assert found is not None
    if found.card and found.share == 1 and fits_variant(name, memory_mib):
        nominal_mib = found.card.memory_gb * 1024
        assert abs(memory_mib - nominal_mib) <= MEMORY_TOLERANCE * nominal_mib * (1 + 1e-9)
    elif found.share == 1:
        assert found == plain


@given(st.text(), st.none() | st.floats())
def test_any_text_can_be_looked_up(text: str, memory_mib: float | None) -> None:
    found = resolve(text, memory_mib)
    try:
        kinds = find_kinds(text)
    except UnknownName:
        assert found is None
    else:
        assert found is not None
        assert found.id in kinds
