"""A witness that was read and checked as far as that needs no device: done before a proof's turn, or ahead of its call."""

from __future__ import annotations

from dataclasses import dataclass, field

from cuzk.errors import CircuitError
from cuzk.groth16 import ProvingKey
from cuzk.prover.evaluations import Evaluations
from cuzk.r1cs import ConstraintSystem
from cuzk.vectors import Scalars


@dataclass(frozen=True)
class Ready:
    """In plain form, of one key and circuit, every value below r; nothing of it is shown.

    ``milliseconds`` are what that took: a proof's report counts them in "check", though not in "total".
    """

    name: str  # in messages
    of: tuple[str, str]  # the digests of the key and of the circuit
    witness: Scalars = field(repr=False)
    public: list[int] = field(repr=False)
    evaluations: Evaluations | None = field(repr=False)
    milliseconds: float

    @property
    def nbytes(self) -> int:
        """Of the host's memory."""
        given = self.evaluations.vectors().values() if self.evaluations else ()
        return sum(vector.words.nbytes for vector in (self.witness, *given))


def expect_ready_for(ready: Ready, key: ProvingKey, matrices: ConstraintSystem) -> None:
    """CircuitError where it was made ready for another key or circuit."""
    if ready.of != (key.digest, matrices.digest):
        ours, theirs = ((k[:16], c[:16]) for k, c in ((key.digest, matrices.digest), ready.of))
        raise CircuitError(
            f"{ready.name}: expected a witness made ready for key {ours[0]} and circuit {ours[1]}, found one for "
            f"key {theirs[0]} and circuit {theirs[1]}"
        )
