"""Tables that the terminal and the console share: the text of each cell, and how the terminal writes a list."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from teraflock.cli.table import write_list
from teraflock.wire.bill import CostAnswer
from teraflock.wire.credit import CreditAnswer
from teraflock.wire.image import ImageAnswer
from teraflock.wire.purchase import LimitAnswer
from teraflock.words import credit, image, purchase
from teraflock.words.bill import cost_text, idle_text, price_text
from teraflock.words.table import Field, Fields, cells

NOW = datetime(2026, 11, 16, 7, tzinfo=UTC)
FIELDS: Fields[str] = (Field("WORD", str), Field("LENGTH", lambda each: str(len(each)), right=True))


def test_a_list_is_a_table_or_json_or_a_sentence(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    write_list(["one", "three"], FIELDS, as_json=False, empty="Nothing")
    assert capfdbinary.readouterr() == (b"WORD   LENGTH\none         3\nthree       5\n", b"")
    write_list([], FIELDS, as_json=False, empty="Nothing")
    assert capfdbinary.readouterr() == (b"", b"Nothing\n")
    write_list([], FIELDS, as_json=False)
    assert capfdbinary.readouterr().out == b"WORD  LENGTH\n"


def test_an_empty_list_is_json_too(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[Any] = []
    monkeypatch.setattr("teraflock.cli.table.write_json", written.append)
    write_list([], FIELDS, as_json=True, empty="Nothing")
    assert json.dumps(written) == "[[]]"


def cost(**values: Any) -> CostAnswer:
    given = {"currency": "USD", "micros": 0, "micros_per_hour": 0, "is_priced": True, **values}
    return CostAnswer(instance_id="ins_1", name="web", **given)


def test_price_is_empty_if_nothing_costs() -> None:
    assert (price_text(None), cost_text(None), price_text(cost()), cost_text(cost())) == ("", "", "", "")
    assert price_text(cost(micros_per_hour=1_500_000)) == "1.5000 USD/h"
    assert price_text(cost(paid_until=NOW)) == "paid until 2026-11-16"
    assert cost_text(cost(micros=2_500_000), 2) == "2.50 USD"


def test_idle_gpus_are_shown_with_their_price() -> None:
    assert idle_text(cost(), NOW) == ""
    idle = cost(idle_gpus=2, idle_since=NOW - timedelta(hours=3), micros_per_hour=1_000_000)
    assert idle_text(idle, NOW) == "2 GPUs of `web` idle for 3 h. It costs 1.0000 USD/h"


def test_amounts_of_a_column_have_the_same_decimals() -> None:
    limits = [
        LimitAnswer(
            member_id="mem_1",
            month="2026-11",
            member="ada",
            currency="USD",
            micros=5_000_000,
            spent_micros=1_250,
        )
    ]
    assert cells(purchase.limit_fields(limits), limits[0]) == ["ada", "5.0000 USD", "0.0012 USD"]


def test_the_last_day_of_a_credit_is_the_day_before_it_expires() -> None:
    given = CreditAnswer(
        id="crd_1", currency="USD", micros=10_000_000, left_micros=10_000_000, reason="gift",
        starts_at=NOW, expires_at=datetime(2027, 1, 1, tzinfo=UTC), is_expired=False,
    )  # fmt: skip
    assert cells(credit.fields([given]), given)[3] == "2026-12-31"


def test_image_from_an_instance_has_no_recipe() -> None:
    made = ImageAnswer(
        id="img_1", name="mine", state="ready", recipe="", shared=False, size_bytes=0, problem="",
        created_at=NOW - timedelta(minutes=5),
    )  # fmt: skip
    assert cells(image.fields(NOW), made) == ["mine", "ready", "", "an instance", "this project", "5 min", ""]
