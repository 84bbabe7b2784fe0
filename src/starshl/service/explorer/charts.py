"""Small charts as paths and rectangles; templates draw them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...evaluation.whole_lists import Reliability
from ...labeling.events import CurvePoint

WIDTH, HEIGHT = 320, 120


@dataclass(frozen=True, slots=True)
class Chart:
    """Coordinates within 320 x 120: a line, the band around it, bars as (x, y, width, height); and its caption."""

    caption: str
    line: str = ""
    band: str = ""
    bars: tuple[tuple[float, float, float, float], ...] = ()
    columns: tuple[tuple[float, float, float, float], ...] = ()
    last: tuple[float, float] | None = None


def agreement_chart(points: Sequence[CurvePoint]) -> Chart | None:
    """Draw how often predictions agreed with the next labels, and behind it how many items each label changed."""
    known = [(position, point) for position, point in enumerate(points) if point.agreement is not None]
    if not known:
        return None
    step = WIDTH / max(len(points) - 1, 1)
    line = [(position * step, _y(point.agreement or 0.0)) for position, point in known]
    upper = [(position * step, _y(point.high if point.high is not None else 0.0)) for position, point in known]
    lower = [(position * step, _y(point.low if point.low is not None else 0.0)) for position, point in known]
    most = max(max(point.n_changed for point in points), 1)
    columns = tuple(
        (
            round(position * step - 1.5, 1),
            round(HEIGHT - HEIGHT * point.n_changed / most * 0.6, 1),
            3.0,
            round(HEIGHT * point.n_changed / most * 0.6, 1),
        )
        for position, point in enumerate(points)
    )
    last = known[-1][1]
    agreement = last.agreement or 0.0
    caption = f"{agreement:.0%} of the guesses matched your answers, and you are asked about the hard items."
    return Chart(caption, _path(line), _path([*upper, *reversed(lower)]) + "Z", (), columns, line[-1])


def confidence_chart(counts: Sequence[int]) -> Chart | None:
    """Draw how many items have which confidence."""
    most = max(counts, default=0)
    if not most:
        return None
    width = WIDTH / len(counts)
    bars = tuple(
        (
            round(position * width + 1, 1),
            round(HEIGHT - HEIGHT * count / most, 1),
            round(width - 2, 1),
            round(HEIGHT * count / most, 1),
        )
        for position, count in enumerate(counts)
    )
    sure = sum(counts[int(0.9 * len(counts)) :])
    return Chart(f"{sure:,} of {sum(counts):,} unlabeled items are at least 90% certain.", bars=bars)


def objective_chart(values: Sequence[float]) -> Chart | None:
    """Draw how the objective fell during a fit."""
    if len(values) < 2 or not max(values) > min(values):
        return None
    low, high = min(values), max(values)
    step = WIDTH / (len(values) - 1)
    points = [(position * step, _y((value - low) / (high - low))) for position, value in enumerate(values)]
    caption = f"The objective fell from {values[0]:.4g} to {values[-1]:.4g} in {len(values) - 1} steps."
    return Chart(caption, line=_path(points), last=points[-1])


def reliability_chart(found: Reliability) -> Chart:
    """Draw how often what was said of pairs came true; right probabilities lie on the line from corner to corner."""
    points = [(WIDTH * said, _y(so)) for said, so in zip(found.said, found.so, strict=True)]
    caption = (
        f"For {sum(found.n_pairs):,} pairs of training rows, each coded without itself, the probability of the same "
        f"class (from left to right) differs from the share that are (from below) by {found.calibration_error:.4f} on "
        f"average. The log loss is {found.log_loss:.4f}."
    )
    return Chart(caption, line=_path(points), band=_path([(0.0, _y(0.0)), (WIDTH, _y(1.0))]))


def _y(share: float) -> float:
    return round(HEIGHT * (1.0 - share), 1)


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:.1f},{y:.1f}" for x, y in points)
