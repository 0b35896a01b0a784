"""One multi-scalar multiplication: scalars on the device, points there or in host memory, against the sum that
their logarithms give.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cuzk.backends import Backend
from cuzk.backends.cuda import CudaBackend
from cuzk.backends.cuda.streamed import Streaming
from cuzk.backends.cuda.transfers import CHOICES, Transfers
from cuzk.bench.clocks import Meter, clock_of
from cuzk.bench.inputs import distinct, known_points, scalars
from cuzk.bench.logarithms import dot
from cuzk.bench.rows import Row
from cuzk.bench.stages import stages_of
from cuzk.errors import DeviceUnavailable, KernelError
from cuzk.setup.scalars import multiple
from cuzk.vectors import Points

PLACES = ("resident", "pinned", "pageable")
BATCHES = CHOICES["batches"]


@dataclass(frozen=True)
class MsmCase:
    """sum of 2^log_n terms in ``group``; ``kind`` of scalars as :mod:`cuzk.bench.inputs` has them.

    ``points`` stay on the device, or in host memory from which a GPU gets them for every sum: "pinned" pages, which it
    copies itself, or "pageable" ones; ``streaming`` says how.
    """

    group: str
    log_n: int
    kind: str = "random"
    points: str = "resident"
    batches: str = "kept"
    streaming: Streaming | None = None

    def run(self, backend: Backend, reps: int, threads: int) -> list[Row]:
        """The first sum and the last must be the right one; KernelError where one is not."""
        backend = self.placed(backend, threads)
        curve, n = backend.curve, 1 << self.log_n
        known = known_points(curve, self.group, distinct(n), threads)
        factors = scalars(curve, self.kind, n, 3, threads)
        log = dot(factors, known.logarithms, 0, threads)
        expected = multiple(curve, self.group, log)
        bases = backend.put(known.repeated(n, threads))
        if refused := backend.notes():
            raise KernelError(f"{backend.name}: msm: expected {self.points} points: {refused[0]}")
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
        if self.points != "resident":
            fields |= {"points": self.points, "batches": self.batches}
        checked = "sum = (sum s_i k_i) G"
        times = meter.times("msm")
        return [Row("msm", backend.name, curve.name, fields, times, checked, stages=stages)]

    def placed(self, backend: Backend, threads: int) -> Backend:
        """The same device, points being where this case has them."""
        if self.points == "resident":
            return backend
        if not isinstance(backend, CudaBackend):
            raise DeviceUnavailable(f"{backend.name}: points are resident: only a GPU copies them")
        how, pinning = (
            self.streaming or Streaming(self.batches),
            {"pinned": "always", "pageable": "never"},
        )
        transfers = Transfers(batches=how.form, points="host", pinning=pinning[self.points])
        return CudaBackend(
            backend.curve, backend.machine, threads=threads, transfers=transfers, streaming=how
        )

    def _expect(self, found: Points, expected: Points, backend: Backend) -> None:
        if not np.array_equal(found.words, expected.words):
            raise KernelError(
                f"{backend.name}: msm {backend.curve.title} {self.group} 2^{self.log_n}, {self.kind} scalars: "
                f"expected {expected.affine()}, found {found.affine()}"
            )
