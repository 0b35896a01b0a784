"""Groth16's prover, in the four phases of the paper (the equations are those of :mod:`cuzk.groth16`).

    evaluate   A w, B w, C w     one value per constraint
    quotient   h = (A B - C)/Z   as the scalars that the key's H points take
    commit     five sums         sum w_i A_i, sum w_i B_i in G1 and in G2, sum w_i L_i, sum h_i H_i
    assemble   A, B, C           blinded by r and s

A device with a queue is given all of its work before the first result is waited for; between the two another
proof may queue its own.

Reference: Groth, "On the Size of Pairing-based Non-interactive Arguments", EUROCRYPT 2016, section 3.2.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, nullcontext

from cuzk.backends import Backend, Buffer
from cuzk.groth16 import Proof
from cuzk.prover.assemble import assemble
from cuzk.prover.commit import start_sums
from cuzk.prover.evaluate import Evaluated, evaluate
from cuzk.prover.evaluations import GivenVectors
from cuzk.prover.quotient import quotient
from cuzk.prover.resident import ResidentKey, reside
from cuzk.vectors import Scalars

__all__ = ["Phase", "ResidentKey", "finish", "prove", "proving", "reside"]

Phase = Callable[[str], AbstractContextManager[None]]
"""Entered around each phase with its name: a stopwatch, a progress bar, or nothing."""


def untimed(_: str) -> AbstractContextManager[None]:
    """The phase hook of a caller who does not want to know."""
    return nullcontext()


def proving(
    key: ResidentKey,
    w: Buffer,
    backend: Backend,
    r: int,
    s: int,
    phase: Phase = untimed,
    given: GivenVectors | Evaluated | None = None,
) -> Generator[None, None, Proof]:
    """The proof for the witness ``w`` (plain form, w[0] = 1) blinded by ``r`` and ``s``.

    Nothing is checked here. Yields once, when all of the device's work is queued. ``given`` are A w, B w, C w
    where they are known; they are used up.
    """
    with phase("evaluate"):
        a, b, c = given.taken(key, backend) if given else evaluate(key, w, backend)
    with phase("quotient"):
        h = quotient(key, a, b, c, backend)
    with phase("commit"):
        started = start_sums(key, w, h, backend)
        yield
        sums = started.finish(phase)
    with phase("assemble"):
        return assemble(key, sums, r, s, backend)


def finish(steps: Generator[None, None, Proof]) -> Proof:
    """What is left of :func:`proving`."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            proof: Proof = end.value
            return proof


def prove(
    key: ResidentKey,
    witness: Scalars | Buffer,
    backend: Backend,
    r: int,
    s: int,
    phase: Phase = untimed,
) -> Proof:
    """:func:`proving` in one go; the witness may be on the device already."""
    w = witness if isinstance(witness, Buffer) else backend.put(witness)
    return finish(proving(key, w, backend, r, s, phase))
