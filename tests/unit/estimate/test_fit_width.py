"""The width of the interval where it is known how far off steps are: found again, and no step speaks for itself."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from lab.fit_width import Spread

CHANCE = np.random.default_rng(7)


def told(model: str, nearness: float, residual: float) -> Any:
    return SimpleNamespace(
        run=SimpleNamespace(job={"model": model}),
        replay=SimpleNamespace(nearness=nearness),
        residual=residual,
    )


def made(count: int, *, near: float, far: float, models: dict[str, float]) -> list[Any]:
    """Off by chance: `near` beside measured operations, `far` away from them, times what is the model's."""
    found = []
    for model, times in models.items():
        for nearness in CHANCE.uniform(0.2, 1, count):
            found.append(told(model, nearness, CHANCE.normal() * times * (far + nearness * (near - far))))
    return found


def test_what_made_the_steps_is_found_again() -> None:
    spread = Spread(made(2000, near=0.02, far=0.06, models={"easy": 0.5, "hard": 1.5}))
    factors = spread.factors()
    assert factors["hard"] / factors["easy"] == pytest.approx(3, rel=0.15)
    near, far = spread.edges()
    for edges, size in ((near, 0.02), (far, 0.06)):
        assert edges[1] == pytest.approx(1.28 * size, rel=0.2)
        assert edges[0] == pytest.approx(-1.28 * size, rel=0.2)


def test_a_model_seen_once_is_taken_as_any_other() -> None:
    steps = made(300, near=0.02, far=0.05, models={"known": 1.0})
    odd = told("new", 0.9, 0.5)
    spread = Spread([*steps, odd])
    assert spread.factor("new", but=odd.run) == 1.0
    assert spread.factor("never seen") == 1.0
    assert 1 < spread.factor("new") < 2.5
    # and by its own width alone it would not be covered
    low, high = spread.around(odd)
    assert not low <= odd.residual <= high
