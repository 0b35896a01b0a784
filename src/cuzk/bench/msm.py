"""One multi-scalar multiplication: points and scalars resident, against the sum that their logarithms give."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cuzk.backends import Backend
from cuzk.bench.clocks import Meter, clock_of
from cuzk.bench.inputs import distinct, known_points, scalars
from cuzk.bench.logarithms import dot
from cuzk.bench.rows import Row
from cuzk.bench.stages import stages_of
from cuzk.errors import KernelError
from cuzk.setup.scalars import multiple
from cuzk.vectors import Points


@dataclass(frozen=True)
class MsmCase:
    """sum of 2^log_n terms in ``group``; ``kind`` of scalars as :mod:`cuzk.bench.inputs` has them."""

    group: str
    log_n: int
    kind: str = "random"

    def run(self, backend: Backend, reps: int, threads: int) -> list[Row]:
        """The first sum and the last must be the right one; KernelError where one is not."""
        curve, n = backend.curve, 1 << self.log_n
        known = known_points(curve, self.group, distinct(n), threads)
        factors = scalars(curve, self.kind, n, 3, threads)
        log = dot(factors, known.logarithms, 0, threads)
        expected = multiple(curve, self.group, log)
        bases = backend.put(known.repeated(n, threads))
        meter = Meter(clock_of(backend))

        def sum_of(name: str) -> Points:
            fresh = backend.put(factors)  # a device keeps the sorted digits of a vector it has seen
            return meter.run(name, lambda: backend.start_msm(bases, fresh))

        self._expect(sum_of("warm-up"), expected, backend)
        for _ in range(reps):
            found = sum_of("msm")
        stages = stages_of(backend)
        self._expect(found, expected, backend)
        fields = {"group": self.group, "log_n": self.log_n, "scalars": self.kind}
        checked = "sum = (sum s_i k_i) G"
        times = meter.times("msm")
        return [Row("msm", backend.name, curve.name, fields, times, checked, stages=stages)]

    def _expect(self, found: Points, expected: Points, backend: Backend) -> None:
        if not np.array_equal(found.words, expected.words):
            raise KernelError(
                f"{backend.name}: msm {backend.curve.title} {self.group} 2^{self.log_n}, {self.kind} scalars: "
                f"expected {expected.affine()}, found {found.affine()}"
            )
