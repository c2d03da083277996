"""Looking up GPU models, providers and exchange rates, and shell completion."""

from pathlib import Path

import pytest
from tests.story.tera import Done, Tera


def test_all_gpu_models(tera: Tera) -> None:
    cards = {card["gpu"]: card for card in tera.ok("gpus", "--json").json}
    assert len(cards) > 120
    assert {"V100-SXM2-32", "H200-SXM", "RTX5090", "MI300X", "TPU-v5p"} <= cards.keys()
    assert cards["A100-SXM4-80"]["memory_bytes"] == 80 << 30
    assert cards["TPU-v5p"]["kind"] != "gpu"
    table = tera.ok("gpus").out.splitlines()
    assert [line.split()[0] for line in table[1:]] == [
        id for id, card in cards.items() if card["kind"] == "gpu"
    ]


def test_one_card_in_detail_with_its_offers(tera: Tera) -> None:
    done = tera.ok("gpus", "Tesla V100-SXM2-32GB")
    assert done.out.startswith("V100-SXM2-32: Tesla V100 SXM2 32 GB\n")
    assert "32 GB HBM2" in done.out
    assert "900 GB/s" in done.out
    assert "source" in done.out
    cheapest = next(line for line in done.out.splitlines() if line.startswith("tencent"))
    assert cheapest.split()[:4] == ["tencent", "V100-SXM2-32?", "on-demand", "1.720"]
    (card,) = tera.ok("gpus", "Tesla V100-SXM2-32GB", "--json").json
    assert card["gpu"] == "V100-SXM2-32"


def test_a_card_without_offers_and_an_accelerator(tera: Tera) -> None:
    assert "No offers are known" in tera.ok("gpus", "B300").err
    done = tera.ok("gpus", "TPU")
    assert "not supported for this kind" in done.out
    assert "gcp" in done.out


def test_all_providers_and_one(tera: Tera) -> None:
    clouds = {cloud["provider"]: cloud for cloud in tera.ok("providers", "--json").json}
    assert len(clouds) >= 14
    assert clouds["oci"]["name"] == "Oracle Cloud"
    assert clouds["oci"]["facts"]
    table = tera.ok("providers").out.splitlines()
    assert [line.split()[0] for line in table[1:]] == list(clouds)
    full = tera.ok("providers", "Oracle").out
    assert full.startswith("oci: Oracle Cloud\n")
    assert "pitfalls" in full


def test_rates_are_listed_replaced_and_reset(tera: Tera, tmp_path: Path) -> None:
    shipped = tera.ok("rates", "--json").json
    assert {rate["currency"] for rate in shipped} >= {"CNY", "EUR", "USD"}
    mine = tmp_path / "mine.csv"
    mine.write_text("date,currency,per_usd,source\n2020-01-01,CNY,10,my bank\n")
    assert "CNY" in tera.ok("rates", "import", mine).err
    question = ("--gpu", "M40", "--mode", "monthly", "--per", "month")
    assert tera.offers(*question)[0]["price_micros"] == 585_600_000
    table = tera.ok("rates")
    assert "my bank" in table.out
    assert "These rates are imported" in table.err
    assert [rate for rate in tera.ok("rates", "--json").json if rate["currency"] == "EUR"] == [
        rate for rate in shipped if rate["currency"] == "EUR"
    ]
    tera.ok("rates", "reset")
    assert tera.ok("rates", "--json").json == shipped


def test_imported_rates_keep_all_offers(newcomer: Tera, tmp_path: Path) -> None:
    """A file without the yuan, imported before the first use."""
    mine = tmp_path / "mine.csv"
    mine.write_text("date,currency,per_usd,source\n2020-01-01,EUR,0.9,my bank\n")
    newcomer.ok("rates", "import", mine)
    assert len(newcomer.offers("--gpu", "M40", "--mode", "monthly")) == 4
    assert newcomer.offers("--gpu", "M40", "--currency", "EUR", "--price-max", "9999")


@pytest.mark.parametrize(
    "content",
    [b"", b"a,b\n1,2\n", b"date,currency,per_usd,source\n2020-01-01,CNY,0,x\n",
     b"date,currency,per_usd,source\n2020-01-01,CNY,7,\xe9\n", b'date,currency,per_usd,source\n"'],
    ids=["empty", "another table", "zero", "Latin-1", "open quote"],
)  # fmt: skip
def test_an_invalid_rates_file_changes_nothing(tera: Tera, tmp_path: Path, content: bytes) -> None:
    bad = tmp_path / "bad.csv"
    bad.write_bytes(content)
    done = tera.run("rates", "import", bad)
    assert done.code == 2
    assert done.err.startswith("error: `bad.csv`")
    assert not (tera.home / "rates.csv").exists()


def test_rates_of_currencies_in_use_cannot_be_removed(tera: Tera, tmp_path: Path) -> None:
    francs = tmp_path / "rates.csv"
    francs.write_text("date,currency,per_usd,source\n2020-01-01,XTS,0.9,my bank\n")
    tera.ok("rates", "import", francs)
    prices = tmp_path / "prices.csv"
    prices.write_text(
        "provider,gpu,gpu_count,mode,price,currency,per\nsome cloud,T4,1,on-demand,0.9,XTS,hour\n"
    )
    tera.ok("offers", "import", "mine", prices)
    (offer,) = tera.offers("--source", "mine")
    assert offer["price_micros"] == 1_000_000
    refused = tera.run("rates", "reset")
    assert refused.code == 1
    assert "XTS" in refused.err
    assert tera.offers("--source", "mine") == [offer]


def test_a_broken_rates_file_is_reported_and_can_be_replaced(tera: Tera) -> None:
    (tera.home / "rates.csv").write_bytes(b"\xff\xfe")
    done = tera.run("offers", "--gpu", "M40")
    assert done.code == 2
    assert "rates.csv" in done.err
    tera.ok("rates", "reset")
    assert tera.offers("--gpu", "M40")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(tera: Tera, shell: str) -> None:
    assert "_TERA_COMPLETE" in tera.ok("completion", shell).out


def completed(tera: Tera, *words: str) -> Done:
    """Return the shell completions for the last word."""
    line = {"COMP_WORDS": " ".join(("tera", *words)), "COMP_CWORD": str(len(words))}
    return tera.run(more={"_TERA_COMPLETE": "bash_complete", **line})


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("of",), "offers"),
        (("offers", "im"), "import"),
        (("offers", "--mem"), "--memory-min"),
        (("offers", "--gpu", "v100-sx"), "V100-SXM2-32"),
        (("offers", "--mode", "on"), "on-demand"),
        (("offers", "--provider", "ten"), "tencent"),
        (("offers", "--region", "guang"), "Guangzhou"),
        (("offers", "--source", "sh"), "shipped"),
        (("offers", "--currency", "k"), "KRW"),
        (("plan", "resnet5"), "resnet50"),
        (("plan", "resnet50", "--precision", "amp"), "amp-bf16"),
        (("plan", "--gpu", "v100-sx"), "V100-SXM2-32"),
        (("plan", "--region", "guang"), "Guangzhou"),
        (("estimate", "mistral"), "mistral-7b"),
        (("estimate", "gpt2", "--precision", "b"), "bf16"),
        (("recommend", "tr"), "training"),
        (("gpus", "mi3"), "MI300X"),
        (("providers", "ora"), ""),
        (("ofers", "--g"), ""),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_shell_completion(tera: Tera, words: tuple[str, ...], offered: str) -> None:
    done = completed(tera, *words)
    assert (done.code, done.err) == (0, "")
    names = [line.partition(",")[2] for line in done.out.split()]
    assert (offered in names) if offered else names == []


def test_completion_creates_no_files(newcomer: Tera) -> None:
    for words in (("offers", "--region", "g"), ("plan", "--source", "s"), ("plan", "--gpu", "v")):
        assert completed(newcomer, *words).code == 0
    assert not newcomer.home.exists()


def test_the_home_follows_the_platform(tmp_path: Path) -> None:
    somewhere = Tera(tmp_path)
    done = somewhere.run(
        "offers", "--limit", "1", more={"TERA_HOME": "", "XDG_DATA_HOME": str(tmp_path / "data")}
    )
    assert done.code == 0
    assert [path.name for path in (tmp_path / "data" / "teraflock").iterdir()] == ["tera.db"]
