"""Sets of moments as lists of disjoint intervals in order; n log n to make one, linear to combine two."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Interval = tuple[float, float]


def union(intervals: Iterable[Interval]) -> list[Interval]:
    """Disjoint intervals in order that cover the same; empty ones vanish."""
    found: list[Interval] = []
    for start, end in sorted(i for i in intervals if i[0] < i[1]):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end)
        else:
            found.append((start, end))
    return found


def common(left: Sequence[Interval], right: Sequence[Interval]) -> list[Interval]:
    """What two unions both cover."""
    found, i, j = [], 0, 0
    while i < len(left) and j < len(right):
        start, end = max(left[i][0], right[j][0]), min(left[i][1], right[j][1])
        if start < end:
            found.append((start, end))
        if left[i][1] < right[j][1]:
            i += 1
        else:
            j += 1
    return found


def without(left: Sequence[Interval], right: Sequence[Interval]) -> list[Interval]:
    """What one union covers and the other does not."""
    if not left:
        return []
    start, end = left[0][0], left[-1][1]
    edges = [start, *(edge for interval in right for edge in interval), end]
    gaps = zip(edges[::2], edges[1::2], strict=True)
    return common(left, [(max(a, start), min(b, end)) for a, b in gaps if a < b])


def length(intervals: Iterable[Interval]) -> float:
    """Of disjoint intervals."""
    return sum(end - start for start, end in intervals)
