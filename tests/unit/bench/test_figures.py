"""The output of `make bench`: aligned columns, and verdicts by the median."""

from bench.figures import Figure, Section, plain, render


def figure(*samples: float, bar: float | None = 10, at_least: bool = False) -> Figure:
    return Figure(what="wall", unit="ms", samples=samples, bar=bar, at_least=at_least)


def test_the_verdict_uses_the_median() -> None:
    assert figure(8, 9, 30).verdict == "within"
    assert figure(8, 11, 30).verdict == "over, best within"
    assert figure(11, 12, 30).verdict == "over"
    assert figure(11, bar=None).verdict == ""


def test_a_lower_bound_is_met_from_above() -> None:
    assert figure(25, 30, 9, at_least=True).verdict == "within"
    assert figure(5, 6, 12, at_least=True).verdict == "under, best within"
    assert figure(5, 6, at_least=True).verdict == "under"


def test_columns_line_up() -> None:
    sections = [
        Section(
            title="cold", figures=(figure(162.44, 133.6, 170.0, bar=150),), notes=("how it was measured",)
        ),
        Section(title="warm", figures=(figure(0.3544, bar=None),)),
        Section(title="peers", notes=("not measured: no network",)),
    ]
    assert render(sections).splitlines() == [
        "          MEDIAN       MIN  N    TARGET  RATIO",
        "cold",
        "  wall  162.4 ms  133.6 ms  3  ≤ 150 ms   1.08  over, best within",
        "    how it was measured",
        "warm",
        "  wall  0.354 ms  0.354 ms  1",
        "peers",
        "    not measured: no network",
    ]


def test_json_has_the_figures_without_their_samples() -> None:
    (section,) = plain([Section(title="cold", figures=(figure(1, 2, 6),))])
    assert section["figures"] == [
        {
            "what": "wall",
            "unit": "ms",
            "median": 2,
            "min": 1,
            "max": 6,
            "samples": 3,
            "bar": 10,
            "bar_is": "at most",
            "ratio": 0.2,
            "verdict": "within",
        }
    ]
