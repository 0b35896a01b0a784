"""What callers bring to a proof: every lane has vectors of its own, as different callers have."""

from __future__ import annotations

from pathlib import Path

from cuzk.backends import Buffer
from cuzk.backends.cpu import CpuBackend
from cuzk.bench.subject import Subject
from cuzk.errors import KernelError
from cuzk.formats.iden3.wtns import write_wtns
from cuzk.groth16 import PREPARED
from cuzk.prover.evaluations import Evaluations
from cuzk.vectors import Scalars

WITNESSES = ("scalars", "file")


class Callers:
    """Vectors by lane, made when they are first asked for; files are written to ``folder``."""

    def __init__(self, subject: Subject, folder: Path, threads: int) -> None:
        self._subject, self._folder, self._threads = subject, folder, threads
        self._witnesses: dict[tuple[int, str], Scalars | Path] = {}
        self._found: list[Scalars] = []
        self._evaluations: dict[int, Evaluations] = {}

    def witness(self, lane: int, kind: str) -> Scalars | Path:
        """In memory, or a .wtns file."""
        if (lane, kind) not in self._witnesses:
            self._witnesses[lane, kind] = self._scalars() if kind == "scalars" else self._file(lane)
        return self._witnesses[lane, kind]

    def evaluations(self, lane: int) -> Evaluations:
        """A w, B w and, where the key takes one, C w, by the CPU."""
        if lane not in self._evaluations:
            self._found = self._found or self._evaluated()
            self._evaluations[lane] = Evaluations(*map(_copy, self._found))
        return self._evaluations[lane]

    def _scalars(self) -> Scalars:
        return _copy(self._subject.witness)

    def _file(self, lane: int) -> Path:
        path = self._folder / f"lane{lane}.wtns"
        write_wtns(path, self._subject.witness)
        return path

    def _evaluated(self) -> list[Scalars]:
        key, matrices = self._subject.key, self._subject.key.matrices
        if matrices is None:
            raise KernelError(f"{key.source}: expected a key with its circuit")
        cpu = CpuBackend(key.curve, self._threads)
        w = cpu.put(self._subject.witness)
        a, b = (cpu.product(cpu.put(m), w, matrices.rows) for m in (matrices.a, matrices.b))
        found: list[Buffer] = [a, b, *([] if key.recipe == PREPARED else [cpu.pointwise(a, b)])]
        return [Scalars(key.curve, cpu.get(buffer).words, montgomery=True) for buffer in found]


def _copy(values: Scalars) -> Scalars:
    return Scalars(values.curve, values.words.copy(), values.montgomery)
