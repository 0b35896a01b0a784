"""Constants of transforms on the device (``native/gpu/ntt.cu`` says how kernels read them).

The table of a primitive 2^(log + 1)-th root z holds T[0..2^log), z's powers in bit-reversed order: 64 bytes
each. It serves transforms of up to 2^(log + 1) points of the roots z^(2^i), and up to 2^log points
on the coset of their square root. Any other coset has a table of its own, for each direction.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

from cuzk.backends.cuda.machine import Machine, Memory, Unit, ceil, grid, uploaded
from cuzk.backends.cuda.ready import Ready
from cuzk.curves import Curve
from cuzk.vectors import Scalars

CONSTANT = 64  # bytes: the value, and the quotient of native/gpu/shoup.hpp
BEFORE = 4  # entries in front of T, as in ntt.hpp
EIGHT = 8  # entries that are stored together
LOG_START = 11  # entries that one block makes
THREADS = 256
BLOCKS = 8  # on a processor


@dataclass(frozen=True)
class Table:
    """Constants of one transform; on a ``coset`` block k of stage s has entry 2^s + k, else entry k."""

    memory: Memory
    coset: bool


@dataclass(frozen=True)
class Powers:
    """T of ``root``, a primitive 2^(log + 1)-th root of unity."""

    root: int
    log: int


@dataclass(frozen=True)
class Coset:
    """The constants of 2^log_n points shift * root^j, or of the way back."""

    root: int
    shift: int
    log_n: int
    inverse: bool


def powers_bytes(log: int) -> int:
    """Of a table of 2^log entries with those before them."""
    return CONSTANT * EIGHT * ceil(BEFORE + (1 << log), EIGHT)


class Tables:
    """Tables of one curve by what they are of, in the order of last use, for all lanes of a device."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.made: dict[Powers | Coset, tuple[Memory, Ready]] = {}

    @property
    def bytes(self) -> int:
        """Held now."""
        return sum(memory.nbytes for memory, _ in self.made.values())


class Twiddles:
    """Tables for one lane; those used longest ago are dropped when all exceed ``limit`` bytes.

    The one asked for last stays, however large it is.
    """

    def __init__(self, machine: Machine, curve: Curve, limit: int, tables: Tables) -> None:
        self._machine = machine
        self._curve = curve
        self._limit = limit
        self._unit = Unit("ntt.cu", curve)
        self._tables = tables

    @property
    def bytes(self) -> int:
        """Held now."""
        return self._tables.bytes

    def table(self, log_n: int, root: int, shift: int, *, inverse: bool) -> Table:
        """The constants of a transform of 2^log_n points shift * root^j."""
        with self._tables.lock:
            return self._table(log_n, root, shift, inverse=inverse)

    def _table(self, log_n: int, root: int, shift: int, *, inverse: bool) -> Table:
        root, shift = root % self._curve.r, shift % self._curve.r
        if shift == 1 or log_n == 0:
            return Table(self._kept(self._powers(log_n, root)), coset=False)
        if shift * shift % self._curve.r == root:
            return Table(
                self._kept(self._cover(log_n + 1, shift) or Powers(shift, log_n)), coset=True
            )
        return Table(self._kept(Coset(root, shift, log_n, inverse)), coset=True)

    def _powers(self, log_n: int, root: int) -> Powers:
        """A table at hand, or one that also serves the coset of a square root, or else half of that."""
        curve = self._curve
        found = self._cover(log_n, root)
        if not found and log_n < curve.two_adicity:
            for generator in (curve.generator, curve.bellman_generator):
                z = curve.root_of_unity(log_n + 1, generator)
                if z * z % curve.r == root:
                    return Powers(z, log_n)
        return found or Powers(root, log_n - 1)

    def _cover(self, log_n: int, root: int) -> Powers | None:
        """The table at hand whose root has ``root``, a primitive 2^log_n-th one, among its z^(2^i)."""
        for key in self._tables.made:
            if isinstance(key, Powers) and self._is_covered(log_n, root, key):
                return key
        return None

    def _is_covered(self, log_n: int, root: int, key: Powers) -> bool:
        above = key.log + 1 - log_n
        return above >= 0 and pow(key.root, 1 << above, self._curve.r) == root

    def _has(self, key: Powers | Coset, old: Powers | Coset) -> bool:
        """Is the one table the beginning of the other?"""
        if isinstance(key, Powers) and isinstance(old, Powers):
            return self._is_covered(old.log + 1, old.root, key)
        return False

    def _kept(self, key: Powers | Coset) -> Memory:
        """From the cache, or made now."""
        made = self._tables.made
        found = made.pop(key, None)
        if found is None:
            memory = self._make_powers(key) if isinstance(key, Powers) else self._make_coset(key)
            found = memory, Ready(self._machine)
        memory, ready = found
        for old in list(made):
            if self._has(key, old) or self.bytes + memory.nbytes > self._limit:
                del made[old]
        made[key] = found  # in the order of last use
        ready.before(self._machine)
        return memory

    def _make_powers(self, key: Powers) -> Memory:
        table = self._machine.alloc(powers_bytes(key.log))
        squares = [key.root]
        while len(squares) < key.log:
            squares.append(squares[-1] * squares[-1] % self._curve.r)
        factors = self._scalars(squares)
        start = min(key.log, LOG_START)
        self._launch("first_twiddles", 1, table, factors, key.log, start)
        for level in range(start, key.log):
            self._launch("double_twiddles", 1 << level, table, factors, key.log, level)
        return table

    def _make_coset(self, key: Coset) -> Memory:
        r, powers = self._curve.r, self._kept(self._powers(key.log_n, key.root))
        shift = pow(key.shift, -1, r) if key.inverse else key.shift
        scales = [pow(shift, (1 << key.log_n) >> s + 1, r) for s in range(key.log_n)]
        table = self._machine.alloc(powers_bytes(key.log_n))
        self._launch(
            "coset_twiddles",
            1 << key.log_n,
            table,
            powers,
            self._scalars(scales),
            key.log_n,
            int(key.inverse),
        )
        return table

    def _scalars(self, values: list[int]) -> Memory:
        scalars = Scalars.from_ints(self._curve, values, montgomery=True)
        return uploaded(self._machine, scalars.words)

    def _launch(self, kernel: str, work: int, *args: Memory | int) -> None:
        blocks = grid(self._machine, work, THREADS, BLOCKS)
        self._machine.launch(self._unit, kernel, blocks, THREADS, *args)
