"""How a name is cut into words, and what the words behind a family ask for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teraflock.catalog.words import SILENT, Wish, key_of, read_wish, words_of


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
    ("rest", "wish"),
    [
        ("", Wish()),
        ("32G", Wish(memory_gb=32)),
        ("32 GiB", Wish(memory_gb=32)),
        ("SXM2-32", Wish(form="sxm2", memory_gb=32)),
        ("80GB PCI-E", Wish(form="pcie", memory_gb=80)),
        ("80GB HBM2e", Wish(memory_gb=80, memory_type="hbm2e")),
        ("Blackwell Max-Q Workstation Edition", Wish(form="max-q", architecture="blackwell")),
        ("MIG 24GB", Wish(part=True, part_memory_gb=24)),
        ("40GB MIG 1g.5gb", Wish(memory_gb=40, part=True, profile="1g.5gb")),
        ("PCIe NVLink", Wish(form="pcie")),
    ],
)
def test_what_the_rest_of_a_name_asks_for(rest: str, wish: Wish) -> None:
    assert read_wish(words_of(rest)) == wish


@pytest.mark.parametrize("rest", ["Ti", "x8", "T3", "16GB 32GB", "foo", "hbm"])
def test_a_word_without_meaning_is_not_passed_over(rest: str) -> None:
    assert read_wish(words_of(rest)) is None


@given(st.text())
def test_any_text_can_be_read(text: str) -> None:
    words = words_of(text)
    assert not SILENT.intersection(words)
    assert key_of(text) == "".join(words)
    assert words_of(" ".join(words)) == words
    wish = read_wish(words)
    assert wish is None or isinstance(wish, Wish)
