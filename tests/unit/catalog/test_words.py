"""Splitting a GPU name into words, and parsing the words after a family."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teraflock.catalog.words import SILENT, Variant, key_of, read_variant, words_of


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Tesla V100-SXM2-32GB", ("v", "100", "sxm", "2", "32", "gb")),
        ("NVIDIA GeForce RTX 3090", ("rtx", "3090")),
        ("TeslaV100", ("v", "100")),
        ("Tesla" * 5000 + "V100", ("v", "100")),
        ("A10 G", ("a", "10", "g")),
        ("特斯拉 V100", ("v", "100")),
        ("NVIDIA", ()),
        ("", ()),
    ],
)
def test_words_of_a_name(text: str, words: tuple[str, ...]) -> None:
    assert words_of(text) == words


@pytest.mark.parametrize(
    ("rest", "variant"),
    [
        ("", Variant()),
        ("32G", Variant(memory_gb=32)),
        ("32 GiB", Variant(memory_gb=32)),
        ("SXM2-32", Variant(form="sxm2", memory_gb=32)),
        ("80GB PCI-E", Variant(form="pcie", memory_gb=80)),
        ("80GB HBM2e", Variant(memory_gb=80, memory_type="hbm2e")),
        ("Blackwell Max-Q Workstation Edition", Variant(form="max-q", architecture="blackwell")),
        ("MIG 24GB", Variant(part=True, part_memory_gb=24)),
        ("40GB MIG 1g.5gb", Variant(memory_gb=40, part=True, profile="1g.5gb")),
        ("PCIe NVLink", Variant(form="pcie")),
    ],
)
def test_the_variant_of_a_name(rest: str, variant: Variant) -> None:
    assert read_variant(words_of(rest)) == variant


@pytest.mark.parametrize("rest", ["Ti", "x8", "T3", "16GB 32GB", "foo", "hbm"])
def test_an_unknown_word_is_not_ignored(rest: str) -> None:
    assert read_variant(words_of(rest)) is None


@given(st.text())
def test_any_text_can_be_parsed(text: str) -> None:
    words = words_of(text)
    assert not SILENT.intersection(words)
    assert key_of(text) == "".join(words)
    assert words_of(" ".join(words)) == words
    variant = read_variant(words)
    assert variant is None or isinstance(variant, Variant)
