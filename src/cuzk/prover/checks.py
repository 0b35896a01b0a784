"""What must be true before a proof is worth starting: key, circuit and witness belong together.

The last check is the statement itself, (A w)_i (B w)_i = (C w)_i, where the circuit's C is known.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cuzk import _core
from cuzk.backends import Backend, Buffer
from cuzk.curves import Curve
from cuzk.errors import CircuitError, FormatError, UnsatisfiedError
from cuzk.groth16 import ProvingKey
from cuzk.prover.evaluate import Evaluated
from cuzk.prover.evaluations import GivenVectors
from cuzk.prover.resident import ResidentKey
from cuzk.r1cs import ConstraintSystem, Matrix
from cuzk.vectors import CanonicalScalars, Scalars

SHOWN_TERMS = 6


@dataclass(frozen=True)
class WitnessOf:
    """What a witness must belong to; ``digests`` gives the key's and the circuit's, for a message."""

    curve: Curve
    key: str
    """What the key is called."""
    wires: int
    digests: Callable[[], tuple[str, str]]


def circuit_of(key: ProvingKey, circuit: ConstraintSystem | None) -> ConstraintSystem:
    """The matrices to prove with: the circuit's where one is given, else the key's own."""
    matrices = circuit or key.matrices
    if matrices is None:
        raise CircuitError(
            f"{key.source}: the key holds no circuit: expected one beside it, found none; give circuit="
        )
    counts = {
        "curve": (key.curve.title, matrices.curve.title),
        "public signals": (key.vk.public, matrices.public),
        "private wires": (key.wires - len(key.vk.ic), matrices.wires - matrices.public - 1),
    }
    if matrices.log_domain > key.log_domain:
        counts["domain"] = (1 << key.log_domain, 1 << matrices.log_domain)
    if key.matrices is not None:
        counts["constraints"] = (key.matrices.constraints, matrices.constraints)
    wrong = [
        f"{name} {ours} and {theirs}" for name, (ours, theirs) in counts.items() if ours != theirs
    ]
    if wrong:
        raise CircuitError(
            f"{key.source}: key and circuit do not belong together: {', '.join(wrong)} "
            f"(key {key.digest[:16]}, circuit {matrices.digest[:16]})"
        )
    return matrices


def check_same_circuit(resident: ResidentKey, backend: Backend) -> None:
    """A key's own A and B against the given circuit's: equal products with a pseudorandom vector.

    The vector is fixed: this finds mistakes, not attacks (a key that lies makes proofs that fail their
    verification).
    """
    own, given = resident.key.matrices, resident.matrices
    if own is None or own is given:
        return
    rng = np.random.default_rng(1)
    words = rng.integers(0, 2**64, (given.wires, given.curve.fr_words), dtype=np.uint64)
    words[:, -1] >>= np.uint64(64 * given.curve.fr_words - given.curve.r.bit_length() + 1)
    vector = backend.put(Scalars(given.curve, words))
    sides: tuple[tuple[str, Matrix, Buffer], ...] = (
        ("A", own.a, resident.matrix_a),
        ("B", own.b, resident.matrix_b),
    )
    for name, matrix, theirs in sides:
        ours = backend.put(matrix)
        row = _first_difference(ours, theirs, vector, max(matrix.rows, theirs.length), backend)
        if row is not None:
            raise CircuitError(
                f"{resident.key.source}: key and circuit do not belong together: they differ in {name} "
                f"at constraint {row} (key {resident.key.digest[:16]}, circuit {given.digest[:16]})"
            )


def _first_difference(
    left: Buffer, right: Buffer, vector: Buffer, rows: int, backend: Backend
) -> int | None:
    size = 1 << (rows - 1).bit_length() if rows else 1
    x, y = backend.product(left, vector, size), backend.product(right, vector, size)
    return backend.first_nonzero(backend.pointwise(x, minus=y, into=x))


def check_witness(
    witness: Scalars, key: ProvingKey, matrices: ConstraintSystem, name: str, threads: int = 1
) -> Scalars:
    """The witness in plain form, of the circuit's curve and length, every value below r, w[0] = 1."""

    def digests() -> tuple[str, str]:
        return key.digest, matrices.digest

    of = WitnessOf(key.curve, key.source, matrices.wires, digests)
    return check_values(witness, of, name, threads)


def check_values(witness: Scalars, of: WitnessOf, name: str, threads: int = 1) -> Scalars:
    """:func:`check_witness` by what is known of a key that need not be loaded."""
    curve = of.curve
    if witness.curve is not curve:
        raise CircuitError(
            f"{name}: expected values of {curve.title}'s scalar field as {of.key} has, "
            f"found {witness.curve.title}'s"
        )
    if len(witness) != of.wires:
        key_digest, circuit_digest = of.digests()
        raise CircuitError(
            f"{name}: expected {of.wires} wires as {of.key} has, found {len(witness)}: "
            f"it belongs to another circuit (key {key_digest[:16]}, circuit {circuit_digest[:16]})"
        )
    shape, dtype = witness.words.shape, witness.words.dtype
    if shape != (len(witness), curve.fr_words) or dtype != np.uint64:
        raise FormatError(
            f"{name}: expected a (n, {curve.fr_words}) array of uint64, found {shape} of {dtype}"
        )
    if not isinstance(witness, CanonicalScalars):
        words = np.ascontiguousarray(witness.words)
        if (index := _core.first_not_canonical(curve.name, "fr", words, threads)) >= 0:
            raise FormatError(f"{name}: wire {index}: expected a value below r, found a larger one")
    if witness.montgomery:
        witness = Scalars.from_ints(curve, witness.ints())
    if (one := witness[:1].ints()[0]) != 1:
        raise FormatError(f"{name}: wire 0: expected the constant 1, found {one}")
    return witness


def check_satisfied(
    resident: ResidentKey, w: Buffer, backend: Backend, name: str, given: GivenVectors | None = None
) -> Evaluated | None:
    """UnsatisfiedError names the first constraint that fails, with its terms; nothing without C.

    Evaluations that were ``given`` are what is checked: a * b = c, or C w where there is no c. Others are handed on.
    """
    if resident.matrix_c is None:
        return None
    n = 1 << resident.key.log_domain

    def values(name: str, matrix: Buffer) -> Buffer:
        there = given.padded(name, n, backend) if given else None
        return there or backend.product(matrix, w, n)

    a, b = values("a", resident.matrix_a), values("b", resident.matrix_b)
    c = values("c", resident.matrix_c)
    row = backend.first_nonzero(backend.pointwise(a, b, minus=c, into=c))
    if row is not None:
        what = f"{name}: evaluations" if given else name
        raise UnsatisfiedError(f"{what}: {_explain(resident.matrices, row)}")
    return None if given else Evaluated(a, b)


def _explain(matrices: ConstraintSystem, row: int) -> str:
    """The constraint with its terms; no value of the witness, which is secret and errors go to logs."""
    r = matrices.curve.r
    if row >= matrices.constraints:
        return f"row {row}: expected a * b = c, found another (constraints end at {matrices.constraints})"
    a, b, c = (
        _combination(matrix.row(row) if matrix else [], r)
        for matrix in (matrices.a, matrices.b, matrices.c)
    )
    return f"constraint {row} of {matrices.constraints} is not satisfied: ({a}) * ({b}) = ({c})"


def _combination(terms: list[tuple[int, int]], r: int) -> str:
    shown = [_term(_signed(c, r), wire) for c, wire in terms[:SHOWN_TERMS]]
    if len(terms) > SHOWN_TERMS:
        shown.append(f"{len(terms) - SHOWN_TERMS} more terms")
    return " + ".join(shown) or "0"


def _term(coefficient: str, wire: int) -> str:
    if not wire:
        return coefficient
    sign = {"1": "", "-1": "-"}.get(coefficient, f"{coefficient}*")
    return f"{sign}w[{wire}]"


def _signed(value: int, r: int) -> str:
    return str(value if value <= r // 2 else value - r)
