"""An NVIDIA GPU as a device: :class:`cuzk.backends.Backend` over kernels of ``native/gpu``, one curve.

Vectors stand in bit-reversed order where the CPU's do. Calls return when their work is queued; the sums
of a proof are queued one behind the other and only their points come back. The digits of a vector's
scalars are made and sorted once and serve every sum over it, by maps from wires to a query's rows that
stay with the query. Vectors are copied ahead of the work that reads them; points that the memory plan has no
room for stay in host memory and are copied batch by batch while others are added up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from itertools import zip_longest
from typing import Any

import numpy as np

from cuzk import _core
from cuzk.backends import Buffer, Workload
from cuzk.backends.cuda import sparse
from cuzk.backends.cuda.buffers import (
    Vector,
    bases_of,
    in_other_order,
    matrix_of,
    montgomery_vector,
    natural,
    vector_of,
)
from cuzk.backends.cuda.elementwise import Elementwise
from cuzk.backends.cuda.machine import Machine, Memory
from cuzk.backends.cuda.memory import share
from cuzk.backends.cuda.msm import Sums
from cuzk.backends.cuda.ntt import Transforms
from cuzk.backends.cuda.residence import Residence
from cuzk.backends.cuda.staged import Staged
from cuzk.backends.cuda.streamed import Streamed, Streaming
from cuzk.backends.cuda.transfers import Transfers
from cuzk.backends.cuda.uploads import Uploads
from cuzk.curves import Curve
from cuzk.errors import DeviceUnavailable, KernelError
from cuzk.r1cs import Matrix
from cuzk.timeline import Timeline
from cuzk.vectors import Points, Scalars


class CudaBackend:
    """One curve on one stream of a device.

    ``threads`` host threads add up handfuls of points. Sums of more than ``longest_sum`` points are cut.
    ``residence`` is what another lane of the device has made and will make; ``streaming`` says how sums over
    points in host memory are made, where ``transfers`` does not say enough.
    """

    def __init__(
        self,
        curve: Curve,
        machine: Machine,
        *,
        threads: int = 1,
        longest_sum: int | None = None,
        transfers: Transfers | None = None,
        residence: Residence | None = None,
        streaming: Streaming | None = None,
    ) -> None:
        if curve.is_toy:
            raise DeviceUnavailable(f"{machine.name}: {curve.title} has no kernels")
        self.curve = curve
        self.name = machine.name
        self.title = machine.title
        self.threads = threads
        self._machine = machine
        self._longest = longest_sum
        self._residence = residence or Residence(curve, transfers or Transfers())
        how = streaming or Streaming(self._residence.transfers.batches)
        streamed = Streamed(machine, curve, how)
        self._sums = Sums(machine, curve, threads, longest_sum, streamed)
        self._residence.sums.add(self._sums)
        self._elementwise = Elementwise(machine, self._residence)
        self._transforms = Transforms(machine, curve, tables=self._residence.tables)
        self._uploads = Uploads(machine, self._residence.transfers, self._residence.pinning)

    @property
    def machine(self) -> Machine:
        """The stream that it works on."""
        return self._machine

    @property
    def lanes(self) -> int:
        """As the last plan has it."""
        plan = self._residence.plan
        return plan.lanes if plan else 1

    @property
    def waiting(self) -> int:
        """As the last plan has it."""
        plan = self._residence.plan
        return plan.waiting if plan else 0

    @property
    def timeline(self) -> Timeline:
        """Of all streams of its lanes."""
        return self._machine.timeline

    @timeline.setter
    def timeline(self, timeline: Timeline) -> None:
        self._machine.timeline = timeline

    def plan(self, work: Workload) -> int:
        """Points that the plan leaves no room for stay in host memory, as they are put."""
        sums, free = self._sums, self._machine.free_bytes()
        longest_vector = max(work.wires, 1 << work.log_domain)
        tables = sums.table_plans(longest_vector) if work.repeated else ()
        plan = share(
            self.curve, work, free, sums.bytes_of, sums.extra_bytes, self._longest, tables,
            streamed_bytes=sums.streamed_bytes, ring_bytes=sums.ring_bytes,
            streamed=self._residence.transfers.points == "host",
        )  # fmt: skip
        cut = plan.chunk < longest_vector  # another key's may be longer
        self._residence.follow(plan, work, plan.chunk if cut else self._longest)
        if plan.lanes < work.lanes:
            self._uploads.note(
                f"{work.lanes} proofs at a time: the device's memory has room for {plan.lanes}"
            )
        return plan.total

    def put(self, value: Scalars | Points | Matrix) -> Buffer:
        """FormatError names the first scalar that is not below r."""
        if isinstance(value, Scalars):
            buffer = self.stage(value)
            self.settle(buffer)
            return buffer
        if isinstance(value, Points):
            points = self._residence.points(self._machine, value, self._uploads.note)
            return Buffer(self.curve, value.group, len(value), True, points)
        if not value.values.montgomery:
            raise KernelError("cuda: matrix: expected coefficients in Montgomery form")
        self._uploads.stage(value.values).settle("coefficient", self.threads)
        matrix = self._residence.matrix(self._machine, value.written_out())
        return Buffer(self.curve, "matrix", value.rows, True, matrix)

    def stage(self, values: Scalars) -> Buffer:
        """On the upload stream, unless the vector's turn is asked for."""
        staged = self._uploads.stage(values)
        buffer = self._scalars(Vector(staged.memory), len(values), montgomery=values.montgomery)
        buffer.staged = staged
        return buffer

    def settle(self, buffer: Buffer) -> None:
        """Waits for an event of the upload stream."""
        if isinstance(buffer.staged, Staged):
            buffer.staged.settle("scalar", self.threads)

    def beside(self) -> CudaBackend:
        """Another compute stream over the same residence."""
        lane = CudaBackend(
            self.curve,
            self._machine.beside(f"compute {len(self._residence.sums) + 1}"),
            threads=self.threads,
            longest_sum=self._longest,
            residence=self._residence,
            streaming=self._sums.streamed.how,
        )
        lane._sums.longest = self._sums.longest
        return lane

    def notes(self) -> list[str]:
        """Each once."""
        return self._uploads.notes()

    def get(self, buffer: Buffer) -> Scalars | Points:
        """A copy, put in natural order on the host."""
        if buffer.kind == "scalar":
            given = vector_of(buffer, "get")
            words = np.empty((buffer.length, self.curve.fr_words), np.uint64)
            self._machine.download(given.memory, words)
            if given.bit_reversed:
                _core.bit_reverse(words, self.threads)
            return Scalars(self.curve, words, buffer.montgomery)
        bases = bases_of(buffer)
        points = bases.points
        if isinstance(points, Points):
            return points
        if bases.ready:
            bases.ready.before(self._machine)
        words = np.empty((buffer.length, self.curve.point_words(buffer.kind)), np.uint64)
        self._machine.download(points, words)
        return Points(self.curve, buffer.kind, words)

    def product(self, matrix: Buffer, witness: Buffer, size: int) -> Buffer:
        """Bit-reversed where ``size`` is a power of two."""
        if witness.montgomery:
            raise KernelError("cuda: product: expected a witness in plain form")
        sparse_matrix, w = matrix_of(matrix), vector_of(witness, "product")
        if w.bit_reversed:
            w = natural(self._machine, self.curve, w, witness.length)
        with self._recorded("product", rows=size):
            out = sparse.product(
                self._machine, self.curve, sparse_matrix, w.memory, witness.length, size
            )
        return self._scalars(Vector(out, size.bit_count() == 1), size)

    def padded(self, values: Buffer, size: int) -> Buffer:
        """In natural order."""
        return self._elementwise.padded(values, size)

    def ntt(self, values: Buffer, root: int, *, inverse: bool = False, shift: int = 1) -> Buffer:
        """``values`` cannot be used afterwards."""
        memory, log_n = self._consumed(values, "ntt", bit_reversed=inverse)
        with self._recorded("ntt", log_n=log_n):
            self._transforms.transform(memory, log_n, root, inverse=inverse, shift=shift)
        return self._scalars(Vector(memory, bit_reversed=not inverse), 1 << log_n)

    def extend(self, values: Sequence[Buffer], root: int, shift: int) -> list[Buffer]:
        """Two in the same launches; all of one length."""
        given = [self._consumed(x, "extend", bit_reversed=True) for x in values]
        log_n = max((log for _, log in given), default=0)
        for (first, _), second in zip_longest(given[::2], given[1::2]):
            other = second[0] if second else None
            with self._recorded("extend", log_n=log_n, vectors=2 if second else 1):
                self._transforms.extend(first, log_n, root, shift, second=other)
        return [self._scalars(Vector(memory, bit_reversed=True), 1 << log_n) for memory, _ in given]

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
        return self._elementwise.pointwise(a, b, minus, scale, into=into)

    def msm(self, bases: Buffer, scalars: Buffer, wires: object = None) -> Points:
        """Started and waited for."""
        return self.start_msm(bases, scalars, wires)()

    def start_msm(
        self, bases: Buffer, scalars: Buffer, wires: object = None
    ) -> Callable[[], Points]:
        """Queued when this returns; of points in host memory every batch is a span of its own."""
        resident = isinstance(bases_of(bases).points, Memory)
        facts = {"points": bases.length}
        span = self._recorded(f"sum {bases.kind}", **facts) if resident else nullcontext()
        with span:
            collect = self._sums.start(bases, scalars, wires)
        return lambda: Points(self.curve, bases.kind, collect())

    def combine(self, points: Points, scalars: Scalars) -> Points:
        """On the host, by the native core."""
        words = self._sums.combine(points.group, points.words, scalars.words)
        return Points(self.curve, points.group, words)

    def first_nonzero(self, values: Buffer) -> int | None:
        """One number comes back."""
        return self._elementwise.first_nonzero(values)

    def mark(self) -> Any:
        """In the stream."""
        return self._machine.mark()

    def milliseconds(self, start: Any, end: Any) -> float:
        """By the device's clock."""
        return self._machine.milliseconds(start, end)

    def free_bytes(self) -> int:
        """What an allocation can still have."""
        return self._machine.free_bytes()

    def resident_bytes(self) -> int:
        """Of matrices, points and their maps that are still in use."""
        return self._residence.resident_bytes()

    def shares(self) -> tuple[int, int]:
        """What stays includes maps and tables that the first proof makes."""
        plan = self._residence.plan
        return (plan.once, plan.lane) if plan else (0, 0)

    def streamed_bytes(self) -> int:
        """Of points that stay in host memory."""
        return self._residence.streamed_bytes()

    @contextmanager
    def _recorded(self, name: str, **facts: int) -> Iterator[None]:
        """What is queued inside as one span of the compute stream: two events, 3 us each."""
        start = self._machine.mark()
        yield
        self._machine.record(name, start, self._machine.mark(), **facts)

    def _scalars(self, value: Vector, length: int, *, montgomery: bool = True) -> Buffer:
        return Buffer(self.curve, "scalar", length, montgomery, value)

    def _consumed(self, values: Buffer, verb: str, *, bit_reversed: bool) -> tuple[Memory, int]:
        """The memory, in that order, and log2 of the length of a vector that nobody uses from now on."""
        given, n = montgomery_vector(values, verb), values.length
        if n.bit_count() != 1:
            raise KernelError(f"cuda: {verb}: expected 2^k elements, found {n}")
        if given.bit_reversed != bit_reversed:
            given = in_other_order(self._machine, self.curve, given, n)
        values.data = None
        return given.memory, n.bit_length() - 1
