"""What a series of proofs proves: a key with its circuit, a witness, and what the proof must be."""

from __future__ import annotations

from dataclasses import dataclass, replace

from cuzk.bench.prove import R, S, quotient_scalars, real_key
from cuzk.bench.synthetic import dense, synthetic_key
from cuzk.curves import Curve
from cuzk.groth16 import Proof, ProvingKey, VerifyingKey
from cuzk.setup.scalars import multiple
from cuzk.vectors import Affine, Scalars
from cuzk.verifier import Public, Verifier

GROUPS = ("g1", "g2", "g1")  # of A, B, C


@dataclass(frozen=True)
class Subject:
    """The key has its circuit without C, as a .zkey does; ``expected`` are A, B, C blinded by R and S where they are
    known without a proof.
    """

    key: ProvingKey
    witness: Scalars
    expected: list[Affine] | None
    log_n: int

    @classmethod
    def of(cls, curve: Curve, recipe: str, log_n: int, verify_to: int, threads: int) -> Subject:
        """A dense circuit of 2^log_n rows; up to ``verify_to`` the key is real. Queries share no memory."""
        matrices, witness = dense(curve, log_n, threads)
        expected = None
        if log_n <= verify_to:
            key = real_key(matrices, recipe, threads)
        else:
            made = synthetic_key(matrices, recipe, threads, apart=True)
            key, h = made.key, quotient_scalars(made.key, witness, threads)
            logs = made.expected(witness, h, R, S, threads)
            expected = [
                multiple(curve, group, log).affine()
                for group, log in zip(GROUPS, logs, strict=True)
            ]
        return cls(replace(key, matrices=replace(matrices, c=None)), witness, expected, log_n)

    @property
    def check(self) -> str:
        """What every proof is compared with."""
        if self.expected is None:
            return "every proof verified by pairings"
        return (
            "A, B, C of every proof against logarithms: the key is synthetic and its proofs verify "
            "nowhere"
        )


class Judge(Verifier):
    """A Prover's self-check that knows what the proof must be where nothing verifies under its key.

    It computes the pairings all the same: they are part of a proof's time.
    """

    def __init__(self, vk: VerifyingKey, expected: list[Affine] | None, threads: int) -> None:
        super().__init__(vk, insecure_key=True, threads=threads)
        self._expected = expected

    def verify(self, public: Public, proof: Proof) -> bool:
        """By pairings or, where A, B, C are known, by comparison."""
        valid = super().verify(public, proof)
        if self._expected is None:
            return valid
        return [proof.a.affine(), proof.b.affine(), proof.c.affine()] == self._expected
