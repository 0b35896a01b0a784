"""Verbs that look at each element of a vector once (``vector.cu``), in place where the caller says so."""

from __future__ import annotations

import numpy as np

from cuzk.backends import Buffer
from cuzk.backends.cuda.buffers import (
    THREADS,
    Vector,
    blocks,
    montgomery_vector,
    natural,
    order,
    vector_of,
)
from cuzk.backends.cuda.machine import Machine, Memory, Unit
from cuzk.backends.cuda.residence import Residence
from cuzk.errors import KernelError


class Elementwise:
    """Of one lane; constants are the residence's."""

    def __init__(self, machine: Machine, residence: Residence) -> None:
        self._machine = machine
        self._residence = residence
        self.curve = residence.curve

    def padded(self, values: Buffer, size: int) -> Buffer:
        """To ``size`` elements in natural order; x as it is has the Montgomery form of x / R, which R makes x again."""
        given, n = vector_of(values, "padded"), values.length
        if n > size:
            raise KernelError(f"cuda: padded: expected at most {size} elements, found {n}")
        out, row = self._vector_memory(size), 8 * self.curve.fr_words
        self._machine.fill(out.part(row * n, row * (size - n)), 0)
        self._launch("gather", n, given.memory, 0, 0, 1, out, n, order(given, n))
        if not values.montgomery:
            radix = pow(2, 64 * self.curve.fr_words, self.curve.r)
            factor = self._residence.constant(self._machine, radix)
            self._launch("pointwise", n, out, 0, 0, factor, out, n)
        return self._scalars(Vector(out), size)

    def pointwise(
        self,
        a: Buffer,
        b: Buffer | None = None,
        minus: Buffer | None = None,
        scale: int = 1,
        *,
        into: Buffer | None = None,
    ) -> Buffer:
        """Operands of unlike order are brought to natural order first."""
        n, given = a.length, {}
        for name, operand in (("a", a), ("b", b), ("minus", minus)):
            if operand:
                given[name] = montgomery_vector(operand, "pointwise")
                if operand.length != n:
                    raise KernelError(
                        f"cuda: pointwise: expected {n} elements in {name}, found {operand.length}"
                    )
        if len({x.bit_reversed for x in given.values()}) > 1:
            given = {name: natural(self._machine, self.curve, x, n) for name, x in given.items()}
        fits = into is not None and into.length == n
        out = vector_of(into, "pointwise").memory if into and fits else self._vector_memory(n)
        words: list[Memory | int] = [
            given[k].memory if k in given else 0 for k in ("a", "b", "minus")
        ]
        factor = self._residence.constant(self._machine, scale) if scale != 1 else 0
        start = self._machine.mark()
        self._launch("pointwise", n, *words, factor, out, n)
        self._machine.record("pointwise", start, self._machine.mark(), elements=n)
        result = Vector(out, given["a"].bit_reversed)
        if into is None:
            return self._scalars(result, n)
        into.data, into.length, into.montgomery = result, n, True
        return into

    def first_nonzero(self, values: Buffer) -> int | None:
        """The lowest index in natural order; one number comes back."""
        given, n = vector_of(values, "first_nonzero"), values.length
        found = self._machine.alloc(8)
        self._machine.fill(found, 0xFF)
        self._launch("first_nonzero", n, given.memory, found, n, order(given, n))
        index = self._index(found)
        if index is not None and index >= n:
            raise KernelError(
                f"{self._machine.name}: first_nonzero: expected an index below {n}, found {index}"
            )
        return index

    def _scalars(self, value: Vector, n: int) -> Buffer:
        return Buffer(self.curve, "scalar", n, True, value)

    def _vector_memory(self, n: int) -> Memory:
        return self._machine.alloc(8 * self.curve.fr_words * n)

    def _launch(self, kernel: str, n: int, *args: Memory | int) -> None:
        unit = Unit("vector.cu", self.curve)
        self._machine.launch(unit, kernel, blocks(self._machine, n), THREADS, *args)

    def _index(self, memory: Memory) -> int | None:
        found = np.empty(1, np.uint64)
        self._machine.download(memory, found)
        return None if int(found[0]) == 2**64 - 1 else int(found[0])
