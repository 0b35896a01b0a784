"""A measured case as data, for JSON and for a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from cuzk.backends import Backend
from cuzk.bench.clocks import Times

WIDTHS = (30, 6, 12, 12, 12, 12, 10)


@dataclass(frozen=True)
class Row:
    """One case on one device; ``checked`` says what its result was compared with."""

    bench: str
    device: str
    curve: str
    fields: dict[str, Any]
    times: Times
    checked: str
    parts: dict[str, Times] = field(default_factory=dict)
    stages: dict[str, tuple[int, float]] = field(default_factory=dict)  # launches and milliseconds

    @property
    def log_n(self) -> int:
        """log2 of the size."""
        return int(self.fields["log_n"])

    def as_dict(self) -> dict[str, Any]:
        """Flat, times in milliseconds."""
        parts = {name: times.as_dict() for name, times in self.parts.items()}
        stages = {
            name: {"launches": k, "ms": round(ms, 4)} for name, (k, ms) in self.stages.items()
        }
        return {
            "bench": self.bench,
            "device": self.device,
            "curve": self.curve,
            **self.fields,
            **self.times.as_dict(),
            **({"parts": parts} if parts else {}),
            **({"stages": stages} if stages else {}),
            "checked": self.checked,
        }

    def lines(self) -> list[str]:
        """For a person, under :func:`heading`: medians, least and most in milliseconds, nanoseconds an element."""
        what = [v for v in self.fields.values() if isinstance(v, str)]
        work, wall = self.times.work, self.times.wall
        cells = [
            " ".join([self.curve, *what]),
            f"2^{self.log_n}",
            *(f"{value:.3f}" for value in (*work, wall.median)),
            f"{1e6 * work.median / (1 << self.log_n):.1f}",
        ]
        lines = [_aligned(cells)]
        if self.parts:
            parts = (f"{name} {t.work.median:.2f}" for name, t in self.parts.items())
            lines.append("    " + ", ".join(parts))
        return lines + [f"    {ms:10.3f}  {k:6}  {name}" for name, (k, ms) in self.stages.items()]


class Case(Protocol):
    """Something to measure."""

    def run(self, backend: Backend, reps: int, threads: int) -> list[Row]:
        """Prove the result right, then time it; KernelError where it is wrong."""
        ...


def heading(measures: str) -> str:
    """Of :meth:`Row.lines`."""
    return _aligned(["milliseconds", "n", measures, "least", "most", "wall", "ns each"])


def _aligned(cells: Sequence[str]) -> str:
    first, *others = (
        cell.rjust(width) if place else cell.ljust(width)
        for place, (cell, width) in enumerate(zip(cells, WIDTHS, strict=True))
    )
    return " ".join([first, *others])
