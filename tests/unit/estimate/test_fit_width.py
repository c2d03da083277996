"""The width of the interval on steps with known errors: the fit recovers it, and no step predicts itself."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from lab.fit_width import Spread

CHANCE = np.random.default_rng(7)


def prediction(model: str, nearness: float, residual: float) -> Any:
    return SimpleNamespace(
        run=SimpleNamespace(job={"model": model}),
        replay=SimpleNamespace(nearness=nearness),
        residual=residual,
    )


def made(count: int, *, near: float, far: float, models: dict[str, float]) -> list[Any]:
    """Random errors: `near` close to measured operations, `far` away from them, times a factor per model."""
    found = []
    for model, times in models.items():
        for nearness in CHANCE.uniform(0.2, 1, count):
            found.append(
                prediction(model, nearness, CHANCE.normal() * times * (far + nearness * (near - far)))
            )
    return found


def test_the_fit_recovers_the_widths_behind_the_steps() -> None:
    spread = Spread(made(2000, near=0.02, far=0.06, models={"easy": 0.5, "hard": 1.5}))
    factors = spread.factors()
    assert factors["hard"] / factors["easy"] == pytest.approx(3, rel=0.15)
    near, far = spread.edges()
    for edges, size in ((near, 0.02), (far, 0.06)):
        assert edges[1] == pytest.approx(1.28 * size, rel=0.2)
        assert edges[0] == pytest.approx(-1.28 * size, rel=0.2)


def test_a_model_seen_once_gets_the_common_width() -> None:
    steps = made(300, near=0.02, far=0.05, models={"known": 1.0})
    odd = prediction("new", 0.9, 0.5)
    spread = Spread([*steps, odd])
    assert spread.factor("new", but=odd.run) == 1.0
    assert spread.factor("never seen") == 1.0
    assert 1 < spread.factor("new") < 2.5
    # its own width alone would not cover it
    low, high = spread.around(odd)
    assert not low <= odd.residual <= high
