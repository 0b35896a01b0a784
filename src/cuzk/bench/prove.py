"""Whole proofs of a dense circuit, the key resident and the witness in host memory; phases beside the total.

Up to ``verify_to`` the key is real (known secrets) and the proof is verified by pairings. Above, where such a key
would take minutes, it is synthetic (:mod:`cuzk.bench.synthetic`): the times are those of a real one, and A, B and C are
compared with the logarithms that the equations give, h being made by the CPU; such a proof verifies nowhere.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from cuzk import _core
from cuzk.backends import Backend
from cuzk.backends.cpu import CpuBackend
from cuzk.bench.clocks import Meter, clock_of, done
from cuzk.bench.rows import Row
from cuzk.bench.stages import stages_of
from cuzk.bench.synthetic import SyntheticKey, dense, synthetic_key
from cuzk.errors import KernelError, ProofError
from cuzk.groth16 import BELLMAN, PREPARED, Proof, ProvingKey
from cuzk.prover import prove, reside
from cuzk.prover.evaluate import evaluate
from cuzk.prover.prepare import prepare_key
from cuzk.prover.quotient import quotient
from cuzk.prover.resident import workload
from cuzk.r1cs import Matrices
from cuzk.setup import Secrets, insecure_setup
from cuzk.setup.scalars import multiple
from cuzk.vectors import Points, Scalars
from cuzk.verifier import Verifier

SECRETS = Secrets(tau=2**200 + 235, alpha=2**190 + 7, beta=2**180 + 11, delta=2**170 + 13)
R, S = 1234567, 7654321  # known blinding: nothing here is secret
VERIFY_TO = 17
SMALLEST = 4


@dataclass(frozen=True)
class ProveCase:
    """2^log_n rows, from 2^4."""

    recipe: str
    log_n: int
    verify_to: int = VERIFY_TO
    repeated: bool = True  # with tables of the key's points, where the device takes to them

    @property
    def verified(self) -> bool:
        """Whether the key is a real one."""
        return self.log_n <= self.verify_to

    def run(self, backend: Backend, reps: int, threads: int) -> list[Row]:
        """KernelError or ProofError where the proof is not the right one."""
        curve = backend.curve
        matrices, witness = dense(curve, self.log_n, threads)
        made = None if self.verified else synthetic_key(matrices, self.recipe, threads)
        key = made.key if made else real_key(matrices, self.recipe, threads, backend)
        without_c = replace(matrices, c=None)  # as a .zkey has it
        backend.plan(workload(key, without_c, repeated=self.repeated))
        resident = reside(key, without_c, backend)
        first = prove(resident, witness, backend, R, S)
        if made:
            self._expect(first, made, witness, backend, threads)
        else:
            self._verify(first, key, witness, backend, threads)
        meter = Meter(clock_of(backend))
        for _ in range(reps):
            last = meter.run("prove", lambda: done(prove(resident, witness, backend, R, S, meter)))
        stages = stages_of(backend)
        if [_words(last, name) for name in "abc"] != [_words(first, name) for name in "abc"]:
            raise KernelError(f"{self._name(backend)}: two proofs with the same blinding differ")
        parts = {name: meter.times(name) for name in meter.names() if name != "prove"}
        fields = {
            "recipe": self.recipe,
            "log_n": self.log_n,
            "wires": matrices.wires,
            "repeated": self.repeated,
        }
        times = meter.times("prove")
        return [Row("prove", backend.name, curve.name, fields, times, self.check, parts, stages)]

    @property
    def check(self) -> str:
        """What the proof is compared with."""
        if self.verified:
            return "verified by pairings"
        return (
            f"A, B, C against logarithms: above 2^{self.verify_to} rows the key is synthetic and its "
            "proofs verify nowhere"
        )

    def _name(self, backend: Backend) -> str:
        return f"{backend.name}: proof {backend.curve.title} {self.recipe} 2^{self.log_n}"

    def _verify(
        self, proof: Proof, key: ProvingKey, w: Scalars, backend: Backend, threads: int
    ) -> None:
        public = w[1 : key.vk.public + 1].ints()
        if not Verifier(key.vk, insecure_key=True, threads=threads).verify(public, proof):
            raise ProofError(f"{self._name(backend)}: the proof does not verify")

    def _expect(
        self, proof: Proof, synthetic: SyntheticKey, w: Scalars, backend: Backend, threads: int
    ) -> None:
        h = quotient_scalars(synthetic.key, w, threads)
        logs = synthetic.expected(w, h, R, S, threads)
        for name, group, log in zip("abc", ("g1", "g2", "g1"), logs, strict=True):
            expected = multiple(backend.curve, group, log)
            found: Points = getattr(proof, name)
            if found.affine() != expected.affine():
                raise KernelError(
                    f"{self._name(backend)}: {name.upper()}: expected {expected.affine()}, found {found.affine()}"
                )


def real_key(
    matrices: Matrices, recipe: str, threads: int, backend: Backend | str = "cpu"
) -> ProvingKey:
    """From known secrets; prepared on ``backend`` where the recipe says so."""
    if recipe != PREPARED:
        return insecure_setup(matrices, SECRETS, recipe, threads=threads)
    key = insecure_setup(matrices, SECRETS, BELLMAN, threads=threads)
    return prepare_key(key, matrices, device=backend, threads=threads)


def quotient_scalars(key: ProvingKey, witness: Scalars, threads: int) -> Scalars:
    """The scalars of H, plain, by the CPU."""
    if key.matrices is None:
        raise KernelError(f"{key.source}: expected a key with its circuit")
    cpu = CpuBackend(key.curve, threads)
    resident = reside(key, key.matrices, cpu)
    h = cpu.get(quotient(resident, *evaluate(resident, cpu.put(witness), cpu), cpu))
    out = h.words
    _core.from_montgomery(key.curve.name, "fr", out, out, threads)
    return Scalars(key.curve, out)


def _words(proof: Proof, name: str) -> bytes:
    points: Points = getattr(proof, name)
    return points.words.tobytes()
