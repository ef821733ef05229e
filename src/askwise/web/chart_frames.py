"""Places in the charts of the page: from values to coordinates, round numbers for axes, and a part that is enlarged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, floor, log10
from typing import Any

STEEP = 0.9  # of all that money can buy: what is above is drawn once more, enlarged, if it is bought early


@dataclass(frozen=True)
class Frame:
    """From values to places in a picture."""

    left: float
    right: float
    top: float
    bottom: float
    across: tuple[float, float]  # the values at the left and right end
    up: tuple[float, float]  # at the bottom and the top

    def x(self, value: float) -> float:
        low, high = self.across
        return round(float(self.left + (self.right - self.left) * (value - low) / (high - low)), 2)

    def y(self, value: float) -> float:
        low, high = self.up
        return round(float(self.bottom - (self.bottom - self.top) * (min(max(value, low), high) - low) / (high - low)), 2)


def enlarged(
    frame: Frame, line: list[tuple[float, float]], points: list[tuple[float, float]], label: Callable[[float], str]
) -> dict[str, Any] | None:
    """The upper end of a line that rises early, to be shown once more in the corner below it: which part of the picture, and
    where. None where it does not rise early, or where something else is drawn in that corner."""
    gain = line[-1][1] - line[0][1]
    upper = [(x, y) for x, y in line if y >= line[0][1] + STEEP * gain]
    wide, tall = frame.right - frame.left, frame.bottom - frame.top
    left, top, bottom = frame.left + 0.45 * wide, frame.top + 0.34 * tall, frame.bottom - 0.16 * tall
    hidden = any(frame.x(x) > left - 50 and frame.y(y) > top - 20 for x, y in points)
    if gain <= 0 or hidden or frame.x(upper[0][0]) > left - 50:
        return None
    first, floor, high = 0.9 * upper[0][0], upper[0][1], upper[-1][1]
    room = 0.4 * (high - floor) or 0.05
    part = Frame(left, frame.right, top, bottom, (first, frame.across[1]), (floor - room, min(high + room, frame.up[1])))
    corner, across, up = (frame.x(first), frame.y(part.up[1])), part.across, part.up
    return {
        "frame": part,
        "shown": (*corner, round(frame.right - corner[0], 2), round(frame.y(up[0]) - corner[1], 2)),
        "x_ticks": [(part.x(v), f"{v:.4g}") for v in ticks(*across, 3)],
        "y_ticks": [(part.y(v), label(v)) for v in ticks(*up, 4)],
    }


def ticks(low: float, high: float, n: int = 5) -> list[float]:
    """About n round numbers from low to high."""
    rough = (high - low) / n
    base = 10.0 ** floor(log10(rough))
    step = next(m * base for m in (1, 2, 2.5, 5, 10) if m * base >= rough)
    return [round(i * step, 10) for i in range(ceil(low / step), floor(high / step) + 1)]
