"""A w, B w and C w that the caller has already, as who synthesises a circuit for bellman does."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from cuzk.backends import Backend, Buffer
from cuzk.errors import CircuitError, FormatError
from cuzk.groth16 import PREPARED, ProvingKey
from cuzk.prover.resident import ResidentKey
from cuzk.r1cs import ConstraintSystem
from cuzk.vectors import Scalars


@dataclass(frozen=True)
class Evaluations:
    """One value per row of the circuit: its constraints, then public + 1 rows that hold wire s in ``a`` and 0 in
    ``b`` and ``c`` (bellman's synthesis makes them, too).

    Zeros may follow up to the domain. Plain or Montgomery form, each its own. Without ``c`` it is a * b. They
    stay as they are until the proof is there.
    """

    a: Scalars
    b: Scalars
    c: Scalars | None = None

    def vectors(self) -> dict[str, Scalars]:
        """Those that there are, by name."""
        known = {"a": self.a, "b": self.b, "c": self.c}
        return {name: vector for name, vector in known.items() if vector is not None}


def check_evaluations(
    given: Evaluations, key: ProvingKey, matrices: ConstraintSystem
) -> Evaluations:
    """Of the key's curve and the circuit's length, contiguous; values are left to the device's check."""
    if not isinstance(given, Evaluations):
        raise FormatError(
            f"evaluations: expected Evaluations(a, b, c), found {type(given).__name__}"
        )
    checked = {}
    for name, vector in given.vectors().items():
        where = f"evaluations: {name}"
        if not isinstance(vector, Scalars):
            raise FormatError(
                f"{where}: expected Scalars, found {type(vector).__name__}; see Scalars.from_ints"
            )
        if vector.curve is not key.curve:
            raise CircuitError(
                f"{where}: expected values of {key.curve.title}'s scalar field as {key.source} has, "
                f"found {vector.curve.title}'s"
            )
        if not matrices.rows <= len(vector) <= 1 << key.log_domain:
            raise CircuitError(
                f"{where}: expected {matrices.rows} values ({matrices.constraints} constraints and "
                f"{matrices.public + 1} public rows) or zeros behind them up to 2^{key.log_domain}, found {len(vector)}"
            )
        words = vector.words
        if words.shape != (len(vector), key.curve.fr_words) or words.dtype != np.uint64:
            raise FormatError(
                f"{where}: expected a (n, {key.curve.fr_words}) array of uint64, "
                f"found {words.shape} of {words.dtype}"
            )
        checked[name] = replace(vector, words=np.ascontiguousarray(words))
    return Evaluations(**checked)


class GivenVectors:
    """:class:`Evaluations` on a device, as they were given: "a", "b" and perhaps "c"."""

    def __init__(self, vectors: dict[str, Buffer]) -> None:
        self._vectors = vectors

    def padded(self, name: str, size: int, backend: Backend) -> Buffer | None:
        """A copy for arithmetic over the domain."""
        given = self._vectors.get(name)
        return backend.padded(given, size) if given else None

    def taken(self, key: ResidentKey, backend: Backend) -> tuple[Buffer, Buffer, Buffer | None]:
        """What :func:`cuzk.prover.evaluate.evaluate` would have found, once: memory is let go on the way."""
        n = 1 << key.key.log_domain
        a, b = (backend.padded(self._vectors.pop(name), n) for name in "ab")
        if key.key.recipe == PREPARED:
            return a, b, None
        c = self.padded("c", n, backend) or backend.pointwise(a, b)
        self._vectors.clear()
        return a, b, c
