"""What stays on a device between proofs, made by one lane and used by all: points, matrices, tables, constants."""

from __future__ import annotations

import threading
from weakref import WeakSet

from cuzk.backends import Workload
from cuzk.backends.cuda.buffers import Bases
from cuzk.backends.cuda.machine import Machine, Memory, uploaded
from cuzk.backends.cuda.memory import MemoryPlan
from cuzk.backends.cuda.msm import Sums
from cuzk.backends.cuda.pinning import Note, Pinning
from cuzk.backends.cuda.ready import Ready
from cuzk.backends.cuda.sparse import DeviceMatrix, put_matrix
from cuzk.backends.cuda.tables import tabulate
from cuzk.backends.cuda.transfers import Transfers
from cuzk.backends.cuda.twiddles import Tables
from cuzk.curves import Curve
from cuzk.errors import OutOfMemory
from cuzk.r1cs import SparseMatrix
from cuzk.vectors import Points, Scalars


class Residence:
    """One curve on one device; ``machine`` is the lane's that makes something."""

    def __init__(self, curve: Curve, transfers: Transfers) -> None:
        self.curve = curve
        self.transfers = transfers
        self.pinning = Pinning(transfers.pinning)
        self.tables = Tables()
        self.plan: MemoryPlan | None = None
        self.sums: WeakSet[Sums] = WeakSet()  # of all lanes
        self._constants: dict[int, tuple[Memory, Ready]] = {}
        self._kept: WeakSet[Bases | DeviceMatrix] = WeakSet()
        self._planned: WeakSet[Bases] = WeakSet()  # points put since the plan
        # queries of the plan that were not put: group and points, and whether they stay
        self._expected: list[tuple[tuple[str, int], bool]] = []
        self._lock = threading.RLock()

    def follow(self, plan: MemoryPlan, work: Workload, longest: int | None) -> None:
        """From now on; no sum of any lane is longer than ``longest``."""
        with self._lock:
            self.plan = plan
            self._planned.clear()
            self._expected = list(zip(work.queries, plan.stay, strict=True))
            for sums in self.sums:
                sums.longest = longest

    def points(self, machine: Machine, value: Points, note: Note) -> Bases:
        """On the device as far as the plan allows, or as memory lasts where there is none."""
        with self._lock:
            found = self._placed(machine, value, note)
            if isinstance(found.points, Points) and len(value):
                found.pages = self.pinning.points(machine, value.words, note)
            self._kept.add(found)
            self._planned.add(found)
            return found

    def matrix(self, machine: Machine, value: SparseMatrix) -> DeviceMatrix:
        """Its values are known to be below r."""
        found = put_matrix(machine, self.curve, value)
        with self._lock:
            self._kept.add(found)
        return found

    def constant(self, machine: Machine, value: int) -> Memory:
        """An element in Montgomery form, kept: a proof scales by the same number every time."""
        with self._lock:
            if value not in self._constants:
                words = Scalars.from_ints(self.curve, [value], montgomery=True).words
                self._constants[value] = uploaded(machine, words), Ready(machine)
            memory, ready = self._constants[value]
        ready.before(machine)
        return memory

    def resident_bytes(self) -> int:
        """Of matrices, points and their maps that are still in use."""
        with self._lock:
            return sum(kept.nbytes for kept in self._kept)

    def streamed_bytes(self) -> int:
        """Of points in use that stay in host memory."""
        with self._lock:
            points = [kept.points for kept in self._kept if isinstance(kept, Bases)]
        return sum(p.words.nbytes for p in points if isinstance(p, Points))

    def _stays(self, value: Points) -> bool:
        """As planned for a query of that group and length, in their order; any other where bytes are left."""
        if not self.plan:
            return True
        query = value.group, len(value)
        for i, (expected, stays) in enumerate(self._expected):
            if expected == query:
                del self._expected[i]
                return stays
        taken = sum(k.point_bytes for k in self._planned)
        windows = self.plan.windows
        return taken + value.words.nbytes * (windows.tables if windows else 1) <= self.plan.points

    def _placed(self, machine: Machine, value: Points, note: Note) -> Bases:
        what = f"{len(value)} points in {value.group}: they stay in host memory"
        if self.transfers.points == "host":
            return Bases(value)
        if not self._stays(value):
            note(f"{what}: the plan has no room for their {value.words.nbytes} bytes")
            return Bases(value)
        windows = self.plan.windows if self.plan else None
        try:
            points = uploaded(machine, value.words)
            if not windows:
                return Bases(points, ready=Ready(machine))
            tables = tabulate(machine, self.curve, value.group, points, len(value), windows)
            rows = tables.part(0, value.words.nbytes)
            return Bases(rows, tables, windows, ready=Ready(machine))
        except OutOfMemory as error:
            machine.finish()
            note(f"{what}: {error}")
            return Bases(value)
