"""Transforms of vectors of scalars on the device (kernels in ``native/gpu/ntt.cu``).

Forward takes natural order and leaves bit-reversed order, y_j = sum_i x_i (shift * root^j)^i; inverse is its
inverse, bit-reversed to natural. A transform is a few passes (:func:`plan`) of up to LOG_TILE stages each;
it takes N log_n / 2 products, 7/8 N less without a coset, and 64 N bytes of traffic per pass and for its
table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from cuzk.backends.cuda.machine import Machine, Memory, Unit, ceil
from cuzk.backends.cuda.twiddles import Table, Tables, Twiddles, powers_bytes
from cuzk.curves import Curve
from cuzk.errors import KernelError

# Elements of a tile: 32 KiB of shared memory, four tiles on a processor. Tiles of 2^11 are slower from 2^22 on
# (0.843 ms instead of 0.790, at 2^24 3.38 instead of 3.15, at 2^26 13.8 instead of 13.1; H200, 2026-11-29).
LOG_TILE = 10
LOG_ELEMENTS = 3  # of a thread
LOG_COLUMNS = 2  # at least: 128 bytes next to each other
LOG_FEW = 4  # below: one block with a butterfly for each thread
LOG_ALONE = 10  # up to this one tile is all there is
LOG_LEAST = 8  # tiles of a warp
LARGEST = 31  # log_n: indices have 32 bits


@dataclass(frozen=True)
class Pass:
    """The stages [first, first + stages) on tiles of 2^log_tile elements."""

    first: int
    stages: int
    log_tile: int

    @property
    def threads(self) -> int:
        """Eight elements each."""
        return 1 << self.log_tile - LOG_ELEMENTS

    @property
    def shared_bytes(self) -> int:
        """One tile."""
        return 32 << self.log_tile


@cache
def plan(log_n: int, log_tile: int = LOG_TILE) -> tuple[Pass, ...]:
    """The passes of a forward transform of 2^log_n elements, log_n >= 4; an inverse takes them backwards.

    As few as fit, two from 2^11 on: one tile is work for one processor. Two have the smallest tiles
    they can, to be many. A stage outside a group of three costs its share and a twelfth more; of equal
    plans the one with the longest last pass, whose constants are the most memory, is taken.
    """

    def cost(split: tuple[int, ...]) -> tuple[int, int]:
        return sum(36 * (k // 3) + 13 * (k % 3) for k in split), -split[-1]

    if log_n <= min(log_tile, LOG_ALONE):
        return (Pass(0, log_n, log_n),)
    count = max(2, 1 + ceil(log_n - log_tile, log_tile - LOG_COLUMNS))
    if count == 2:
        log_tile = min(log_tile, max(LOG_LEAST, (log_n + LOG_COLUMNS + 1) // 2))
    best = min(_splits(log_n, count, log_tile), key=cost)
    return tuple(Pass(sum(best[:i]), best[i], log_tile) for i in range(count))


def _splits(log_n: int, count: int, log_tile: int) -> Iterator[tuple[int, ...]]:
    """All ways to cut the stages into passes that the kernels can do."""
    if count == 1:
        if 3 <= log_n <= log_tile:
            yield (log_n,)
        return
    for stages in range(4, log_tile - LOG_COLUMNS + 1):
        for rest in _splits(log_n - stages, count - 1, log_tile):
            yield (stages, *rest)


@dataclass(frozen=True)
class _Work:
    """One or two vectors of 2^log_n scalars, transformed in the same launches."""

    vectors: Sequence[Memory]
    log_n: int


class Transforms:
    """Transforms of one curve's scalars on one machine; ``tables``, of all lanes, are kept up to ``limit`` bytes."""

    def __init__(
        self,
        machine: Machine,
        curve: Curve,
        *,
        limit: int = 1 << 40,
        log_tile: int = LOG_TILE,
        tables: Tables | None = None,
    ) -> None:
        self._machine = machine
        self._curve = curve
        self._unit = Unit("ntt.cu", curve)
        self._log_tile = log_tile
        self._twiddles = Twiddles(machine, curve, limit, tables or Tables())

    @property
    def bytes(self) -> int:
        """Device memory that tables hold now."""
        return self._twiddles.bytes

    @staticmethod
    def table_bytes(curve: Curve, log_n: int) -> int:
        """Device memory of the tables that transforms of 2^log_n elements and their odd coset need.

        Where no root's root is left to be the shift there is a table of each kind: roots, coset, back.
        """
        if log_n < curve.two_adicity:
            return powers_bytes(log_n)
        return powers_bytes(log_n - 1) + 2 * powers_bytes(log_n)

    def transform(
        self,
        values: Memory,
        log_n: int,
        root: int,
        *,
        inverse: bool,
        shift: int = 1,
        second: Memory | None = None,
    ) -> None:
        """Transform ``values`` in place, and ``second`` in the same launches.

        Montgomery form; ``root`` is a primitive 2^log_n-th root of unity, plain as ``shift``.
        """
        work = self._work(log_n, root, values, second)
        table = self._twiddles.table(log_n, root, shift, inverse=inverse)
        if log_n < LOG_FEW:
            for vector in work.vectors:
                how = (log_n, int(table.coset), int(inverse))
                self._machine.launch(self._unit, "transform_few", 1, 8, vector, table.memory, *how)
        elif inverse:
            self._join(work, plan(log_n, self._log_tile), table, log_n)
        else:
            self._divide(work, plan(log_n, self._log_tile), table)

    def extend(
        self, values: Memory, log_n: int, root: int, shift: int, *, second: Memory | None = None
    ) -> None:
        """From values on <root> (bit-reversed) to values on its coset of ``shift`` (bit-reversed), in place.

        The same as an inverse and a forward transform; the passes that meet are one.
        """
        if log_n < LOG_FEW:
            self.transform(values, log_n, root, inverse=True, second=second)
            self.transform(values, log_n, root, inverse=False, shift=shift, second=second)
            return
        work = self._work(log_n, root, values, second)
        plain = self._twiddles.table(log_n, root, 1, inverse=True)
        coset = self._twiddles.table(log_n, root, shift, inverse=False)
        top, *rest = plan(log_n, self._log_tile)
        self._join(work, rest, plain, 0)
        tables = (plain.memory, coset.memory)
        self._launch("extend_pass", work, top, *tables, log_n, top.stages, int(coset.coset))
        self._divide(work, rest, coset)

    def _divide(self, work: _Work, passes: Sequence[Pass], table: Table) -> None:
        for p in passes:
            stages = (work.log_n, p.first, p.stages, int(table.coset))
            self._launch("divide_pass", work, p, table.memory, *stages)

    def _join(self, work: _Work, passes: Sequence[Pass], table: Table, halvings: int) -> None:
        """``passes`` in their forward order; the result is divided by 2^halvings."""
        for p in reversed(passes):
            stages = (work.log_n, p.first, p.stages, int(table.coset))
            last = halvings if p is passes[0] else 0
            self._launch("join_pass", work, p, table.memory, *stages, last)

    def _launch(self, kernel: str, work: _Work, p: Pass, *args: Memory | int) -> None:
        blocks = len(work.vectors) << work.log_n - p.log_tile
        first, *others = work.vectors
        second = others[0] if others else 0
        self._machine.launch(
            self._unit, kernel, blocks, p.threads, first, second, *args, shared=p.shared_bytes
        )

    def _work(self, log_n: int, root: int, values: Memory, second: Memory | None) -> _Work:
        """KernelError where sizes or the root do not fit."""
        if not 0 <= log_n <= LARGEST:
            raise KernelError(f"cuda: ntt: expected log_n from 0 to {LARGEST}, found {log_n}")
        vectors = [values] if second is None else [values, second]
        for vector in vectors:
            if vector.nbytes != 32 << log_n:
                raise KernelError(
                    f"cuda: ntt: expected a vector of {32 << log_n} bytes, found {vector.nbytes}"
                )
        r = self._curve.r
        if pow(root, (1 << log_n) // 2, r) != (r - 1 if log_n else 1):
            raise KernelError(
                f"cuda: ntt: expected a primitive 2^{log_n}-th root of unity, found {root}"
            )
        return _Work(vectors, log_n)
