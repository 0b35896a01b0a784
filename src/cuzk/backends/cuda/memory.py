"""How a proof shares out device memory, decided before any work starts.

    always    matrices, witness, maps from wires to rows of queries
    quotient  three vectors over the domain, the tables of transforms
    commit    one vector over the domain and what one sum of ``chunk`` points needs: entries, buckets
    points    of the key: all of them, or as many as are left room for; the others stay in host memory

The two phases do not overlap, so the larger of them counts. Where all points do not fit beside sums of
full length, sums are cut into chunks, halved until they do; below SHORTEST points no shorter: then points
stay in host memory and are copied chunk by chunk. A chunk's partial sums are added on the host.

Where everything fits and many proofs are to come, points take what is left for tables of their multiples.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cuzk.backends import Workload
from cuzk.backends.cuda.ntt import Transforms
from cuzk.backends.cuda.sparse import matrix_bytes
from cuzk.backends.cuda.tables import table_bytes
from cuzk.backends.cuda.windows import WindowPlan
from cuzk.curves import Curve
from cuzk.errors import OutOfMemory

SHORTEST = 1 << 20  # points of a chunk: 100 MiB of points, and the card is still full
SPARED = 32  # one part in so many of the free memory is left for the driver's own and for rounding
VECTORS = 3  # over the domain, at once: A, B, C
MAP_BYTES = 4  # a scalar, for each query: the row that goes with it

SumBytes = Callable[[str, int, WindowPlan | None], int]
"""Device memory that a sum in a group takes beside its points: f("g1", points, windows or None)."""


@dataclass(frozen=True)
class MemoryPlan:
    """Bytes that may stay taken by points, the longest sum made at once, and all bytes at the height.

    With ``windows`` all points get tables for that plan.
    """

    points: int
    chunk: int
    total: int
    windows: WindowPlan | None = None


def share(
    curve: Curve,
    work: Workload,
    free: int,
    sum_bytes: SumBytes,
    extra_bytes: SumBytes,
    longest: int | None = None,
    table_plans: Sequence[WindowPlan] = (),
) -> MemoryPlan:
    """The plan for ``free`` bytes; sums longer than ``longest`` are cut in any case.

    ``extra_bytes`` make a sum faster: it takes them, up to half, of what is free when it starts. The first of
    ``table_plans`` whose tables fit is taken. OutOfMemory where even the vectors and the shortest chunks do not fit.
    """
    usable = free - free // SPARED
    element, domain = 8 * curve.fr_words, 1 << work.log_domain
    fixed = sum(matrix_bytes(*shape, curve.fr_words) for shape in work.matrices)
    fixed += element * work.wires + Transforms.table_bytes(curve, work.log_domain)
    fixed += MAP_BYTES * max(work.wires, domain) * len(work.queries)
    vectors = element * VECTORS * domain
    points = sum(8 * curve.point_words(group) * n for group, n in work.queries)
    groups = sorted({group for group, n in work.queries if n})
    whole = max([work.wires, domain, 1])

    def height(chunk: int, windows: WindowPlan | None = None) -> int:
        row = max([8 * curve.point_words(group) for group in groups], default=0)
        copied = chunk * (row + element) if chunk < whole else 0
        sums = max([sum_bytes(group, chunk, windows) for group in groups], default=0)
        return fixed + max(vectors, element * domain + copied + sums)

    chunk = min(whole, longest or whole)
    while height(chunk) + points > usable and chunk > min(SHORTEST, whole):
        chunk = max(chunk // 2, min(SHORTEST, whole))
    needed = height(chunk)
    if needed > usable:
        raise OutOfMemory(
            f"cuda: a proof of 2^{work.log_domain} rows and {work.wires} wires needs {needed} bytes of "
            f"device memory without the key's points, {usable} can be had; take a larger GPU or the CPU"
        )

    def extra(windows: WindowPlan | None = None) -> int:
        return max([extra_bytes(group, chunk, windows) for group in groups], default=0)

    for windows in table_plans if chunk == whole else ():
        tables = sum(table_bytes(curve, group, n, windows) for group, n in work.queries)
        if (total := tables + height(chunk, windows) + extra(windows)) <= usable:
            return MemoryPlan(tables, chunk, total, windows)
    stay = min(points, usable - needed)
    return MemoryPlan(stay, chunk, min(needed + stay + extra(), usable))
