"""One try to prove a statement on one device: copies begun, work queued, results waited for and verified."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from cuzk.backends import Backend, Buffer
from cuzk.errors import CuzkError
from cuzk.groth16 import PREPARED, Proof
from cuzk.prover import finish, proving
from cuzk.prover.arriving import Arriving
from cuzk.prover.checks import check_satisfied
from cuzk.prover.evaluate import Evaluated
from cuzk.prover.evaluations import GivenVectors
from cuzk.prover.ready import Ready
from cuzk.prover.report import Stopwatch
from cuzk.prover.resident import ResidentKey


@dataclass
class Statement:
    """What is to be proved, and what came of it so far."""

    ready: Ready
    r: int
    s: int
    verify: Callable[[Proof], bool]
    watch: Stopwatch
    threads: int
    alone: bool = False  # to be made with nobody else in work
    checked: bool = False  # known to satisfy the circuit, if that can be known
    device_milliseconds: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


class Refused(Exception):
    """The check on a device found ``error``: not believed yet."""

    def __init__(self, error: CuzkError) -> None:
        super().__init__(str(error))
        self.error = error


class Attempt:
    """:meth:`stage`, then in its turn :meth:`check` and :meth:`start`, then :meth:`finish`.

    Leaving the ``with`` block ends whatever is under way.
    """

    def __init__(self, statement: Statement, key: ResidentKey, backend: Backend) -> None:
        self._statement = statement
        self._key = key
        self._backend = backend
        self._arriving = Arriving(backend, statement.threads)
        self._w: Buffer | None = None
        self._given: GivenVectors | None = None
        self._evaluated: Evaluated | None = None
        self._steps: Generator[None, None, Proof] | None = None

    def stage(self) -> Buffer:
        """Begin to copy: a first, so that work on it may start while b is on its way."""
        ready = self._statement.ready
        vectors = ready.evaluations.vectors() if ready.evaluations else {}
        if self._key.key.recipe == PREPARED and self._key.matrix_c is None:
            vectors.pop("c", None)  # of no use
        given = {k: self._arriving.stage(f"evaluations: {k}", v) for k, v in vectors.items()}
        self._given = GivenVectors(given) if given else None
        self._w = w = self._arriving.stage(ready.name, ready.witness)
        return w

    def check(self) -> None:
        """Refused where constraints are not satisfied or the device fails; FormatError before that."""
        try:
            with self._statement.watch.adding("check"):
                self._evaluated = check_satisfied(
                    self._key, self._there(), self._backend, self._statement.ready.name, self._given
                )
        except CuzkError as error:
            self.settle()
            raise Refused(error) from error

    def start(self) -> None:
        """Queue all of the device's work."""
        statement = self._statement
        phase, known = statement.watch.on(self._backend), self._given or self._evaluated
        self._steps = proving(
            self._key, self._there(), self._backend, statement.r, statement.s, phase, known
        )
        next(self._steps)

    def settle(self) -> None:
        """Wait until the vectors were copied."""
        self._arriving.settle()

    def finish(self) -> Proof | None:
        """The proof, unless it failed its verification."""
        statement, steps = self._statement, self._steps
        if steps is None:
            return None
        self.settle()
        proof = finish(steps)
        statement.device_milliseconds = statement.watch.device_milliseconds(self._backend)
        with statement.watch("verify"):
            return proof if statement.verify(proof) else None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._arriving:
            if self._steps:
                self._steps.close()
            self._steps = self._w = self._given = self._evaluated = None
            self._statement.notes += self._backend.notes()

    def _there(self) -> Buffer:
        return self._w or self.stage()
