"""Readings as text: idle cards with their cost, and charts."""

from datetime import UTC, datetime, timedelta

from teraflock.api.routes.telemetry import host_reading_answer
from teraflock.fleet.model import HostId
from teraflock.fleet.telemetry.model import CardReading, LastOfHost, LastReading
from teraflock.wire.host import HostCostAnswer
from teraflock.wire.telemetry import HostReadingAnswer, ReadingsAnswer, SeriesAnswer
from teraflock.words.telemetry import BARS, chart_facts, idle_text, summary_text

NOW = datetime(2026, 11, 16, tzinfo=UTC)


def host(name: str, *percents: int | None) -> HostReadingAnswer:
    cards = tuple(
        CardReading(slot=f"0000:{n:02x}:00.0", utilisation_percent=p) for n, p in enumerate(percents)
    )
    reading = LastReading(at=NOW, simulated=False, cards=cards)
    return host_reading_answer(LastOfHost(host_id=HostId(name), host=name, reading=reading))


def cost(number: int, name: str, micros: int | None, hours: int = -1) -> HostCostAnswer:
    return HostCostAnswer(
        number=number,
        host_id=name,
        host=name,
        starts_at=NOW + timedelta(hours=hours),
        micros_per_hour=micros,
        currency="USD" if micros else "",
        recorded_at=NOW,
    )


def test_idle_cards_are_named_with_their_part_of_the_host_s_cost() -> None:
    hosts = [host("lab1", 0, 4, 90, 50), host("lab2", 0), host("lab3", 99), host("lab4", None)]
    costs = [cost(1, "lab1", 1_000_000), cost(2, "lab1", 4_000_000), cost(3, "lab1", 9_000_000, hours=1)]
    assert idle_text(hosts, costs, NOW) == "Idle now: 2 cards of lab1, 1 of lab2. They cost 2 USD per hour"
    assert idle_text(hosts, [*costs, cost(4, "lab1", None)], NOW) == "Idle now: 2 cards of lab1, 1 of lab2"
    assert idle_text(hosts[2:], costs, NOW) == ""
    assert idle_text([host(f"h{n}", 0) for n in range(8)], (), NOW).endswith("1 of h4, 3 more hosts")


def test_a_chart_has_a_bar_for_each_part_and_spaces_without_readings() -> None:
    until = int(NOW.timestamp())
    series = SeriesAnswer(
        slot="s",
        instance_id="",
        times=(until - 3500, until - 10, until),
        values={"utilisation_percent": (0, 100, None)},
    )
    history = ReadingsAnswer(period="hour", step_seconds=10, until=NOW, simulated=False, series=(series,))
    assert list(chart_facts(history, 4)) == [("s", f"{BARS[0]}  {BARS[-1]} 50 % mean")]


def test_one_host_is_not_plural() -> None:
    assert summary_text([host("a", 0)]).startswith("1 host, 1 card: ")
    assert summary_text([host("a", 0, 0), host("b")]).startswith("2 hosts, 2 cards: ")
