"""Forward and inverse transforms in place, against the polynomial's value at a random point.

Both directions run in turns on one vector: forward takes natural order and leaves bit-reversed ("nr"), inverse the
reverse ("rn"). After any number of turns the vector must be the one that was put.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass

import numpy as np

from cuzk import _core
from cuzk.backends import Backend, Buffer
from cuzk.bench.clocks import Meter, Wait, clock_of, done
from cuzk.bench.inputs import uniform
from cuzk.bench.logarithms import evaluation, interpolation
from cuzk.bench.rows import Row
from cuzk.bench.stages import stages_of
from cuzk.errors import KernelError
from cuzk.vectors import Scalars

ORDERS = ("nr", "rn")
CORE_TO = (
    20  # log2 of the largest transform that is also compared with the native core's, value by value
)


@dataclass(frozen=True)
class NttCase:
    """2^log_n Montgomery values; ``coset``: on the odd coset, as the quotient needs it."""

    log_n: int
    coset: bool = False
    orders: tuple[str, ...] = ORDERS

    def run(self, backend: Backend, reps: int, threads: int) -> list[Row]:
        """A row an order; KernelError where a result is wrong."""
        curve = backend.curve
        given = Scalars(curve, uniform(curve, 1 << self.log_n, 4, threads).words, montgomery=True)
        root = curve.root_of_unity(self.log_n)
        shift = curve.coset_shift(self.log_n) if self.coset else 1
        meter = Meter(clock_of(backend))
        values = backend.put(given)

        def turn(name: str, values: Buffer, *, inverse: bool) -> Buffer:
            def queue() -> Wait[Buffer]:
                return done(backend.ntt(values, root, inverse=inverse, shift=shift))

            return meter.run(name, queue)

        values = turn("warm-up", values, inverse=False)
        self._expect_values(given, backend.get(values), root, shift, backend, threads)
        values = turn("warm-up", values, inverse=True)
        stages = {}
        for _ in range(reps):
            for order in ORDERS:
                values = turn(order, values, inverse=order == "rn")
                stages[order] = stages_of(backend)
        if not np.array_equal(backend.get(values).words, given.words):
            raise KernelError(
                f"{self._name(backend)}: expected {reps + 1} turns to give back the vector, found another"
            )
        checked = "value at a random point; back to the same vector"
        checked += "; every value by the native core" if self._with_core(backend) else ""

        def row(order: str) -> Row:
            name = f"{order} coset" if self.coset else order
            fields = {"order": name, "log_n": self.log_n}
            times = meter.times(order)
            return Row(
                "ntt", backend.name, curve.name, fields, times, checked, stages=stages[order]
            )

        return [row(order) for order in self.orders]

    def _name(self, backend: Backend) -> str:
        return f"{backend.name}: ntt {backend.curve.title} 2^{self.log_n}"

    def _with_core(self, backend: Backend) -> bool:
        return backend.name != "cpu" and self.log_n <= CORE_TO

    def _expect_values(
        self, x: Scalars, found: object, root: int, shift: int, backend: Backend, threads: int
    ) -> None:
        if not isinstance(found, Scalars):
            raise KernelError(
                f"{self._name(backend)}: expected scalars, found {type(found).__name__}"
            )
        z = secrets.randbelow(x.curve.r)  # in the coset with probability n / r: not in this world
        left = evaluation(x, z, threads)
        right = interpolation(found, root, shift, z, threads)
        if left != right:
            raise KernelError(
                f"{self._name(backend)}: at {z:#x} the polynomial is {left:#x}, its values interpolate to {right:#x}"
            )
        if not self._with_core(backend):
            return
        words = x.words.copy()
        w, g = (Scalars.from_ints(x.curve, [v], montgomery=True).words for v in (root, shift))
        _core.ntt(x.curve.name, words, w, g, False, threads)
        _core.bit_reverse(words, threads)
        if not np.array_equal(words, found.words):
            index = int((words != found.words).any(axis=1).argmax())
            raise KernelError(
                f"{self._name(backend)}: value {index} differs from the native core's"
            )
