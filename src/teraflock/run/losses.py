"""The losses of a run over its steps, thinned to a fixed number of points for a chart. Pure."""

from typing import Final

Losses = tuple[tuple[int, float], ...]
"""Steps and losses, by step. All but the last are about equally far apart; the last is the newest."""
POINTS_MAX: Final = 120


def with_loss(losses: Losses, step: int, loss: float | None) -> Losses:
    """Add a point. A run that continues from a checkpoint repeats steps: the newer loss of a step counts."""
    if loss is None:
        return losses
    kept = tuple(each for each in losses if each[0] < step)
    if len(kept) > 2 and kept[-1][0] - kept[-2][0] < kept[1][0] - kept[0][0]:
        kept = kept[:-1]  # it was the newest, but is too close to the one before to stay
    if len(kept) >= POINTS_MAX:
        kept = kept[::2]
    return (*kept, (step, loss))
