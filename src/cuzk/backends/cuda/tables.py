"""Tables of a key's points and their multiples: ``native/gpu/tables.cu``.

Table t of n points is 2^(t k) P_0, ..., 2^(t k) P_(n-1), k = width * sets of a :class:`WindowPlan`; the
tables lie one behind the other. The digit of window t sets + v then takes its point from table t and goes
to bucket set v: sum_w d_w 2^(c w) P = sum_v 2^(c v) sum_t d_(t sets + v) 2^(t k) P.

Made once per key: n k doublings for each table after the first, 9 products each (2^20 points of BLS12-381 in
G1, 13 tables: 2.4e9 products, a tenth of a second on an H200).
"""

from __future__ import annotations

from cuzk.backends.cuda.machine import Machine, Memory, Unit, grid
from cuzk.backends.cuda.windows import WindowPlan
from cuzk.curves import Curve

THREADS = 128
BLOCKS = 4  # per processor
CHUNK = 1 << 20  # points doubled at once: three coordinates of each are beside them


def tabulate(
    machine: Machine, curve: Curve, group: str, points: Memory, n: int, plan: WindowPlan
) -> Memory:
    """``plan.tables`` tables of ``n`` affine points, infinity allowed; the first holds the points themselves."""
    row = 8 * curve.point_words(group)
    tables = machine.alloc(max(plan.tables * n, 1) * row)
    chunk = min(n, CHUNK)
    scratch = [machine.alloc(max(chunk, 1) * row // 2) for _ in range(3)]
    unit = Unit("tables.cu", curve, group)
    for table in range(plan.tables):
        source = tables if table else points
        doublings, before = (plan.width * plan.sets, (table - 1) * n) if table else (0, 0)
        for begin in range(0, n, chunk or 1):
            count = min(chunk, n - begin)
            blocks = grid(machine, count, THREADS, BLOCKS)
            given = source.part((before + begin) * row, count * row)
            made = tables.part((table * n + begin) * row, count * row)
            machine.launch(
                unit, "multiply_points", blocks, THREADS, given, made, *scratch, count, doublings
            )
    return tables


def table_bytes(curve: Curve, group: str, n: int, plan: WindowPlan) -> int:
    """Device memory that the tables keep."""
    return plan.tables * n * 8 * curve.point_words(group)
