"""Small files of every kind that snarkjs and bellman exchange, for one circuit, from known secrets.

``python tests/formats/exchange_files.py`` (with tests and src on the path) writes the corpus anew.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from circuits import cubic
from cuzk.curves import BLS12_381, CURVES
from cuzk.formats import bellman, snarkjs_json
from cuzk.groth16 import BELLMAN, SNARKJS, Proof, ProvingKey
from cuzk.prover import prove, reside
from reference import ReferenceBackend
from reference_setup import key_from

CORPUS = Path(__file__).resolve().parents[1] / "corpus" / "exchange"
BLINDING = 1_000_003, 2_000_003  # r and s


@cache
def key(curve: str, recipe: str) -> ProvingKey:
    """The cubic circuit's key."""
    return key_from(cubic(CURVES[curve]).matrices(), recipe=recipe)


def proof(curve: str, key: ProvingKey) -> Proof:
    circuit = cubic(CURVES[curve])
    backend = ReferenceBackend(CURVES[curve])
    resident = reside(key, circuit.matrices(), backend)
    return prove(resident, circuit.witness(), backend, *BLINDING)


def public(curve: str) -> list[int]:
    return cubic(CURVES[curve]).public_values()


def contents() -> dict[str, bytes]:
    """Name and bytes of every file of the corpus."""
    files: dict[str, bytes] = {}
    for curve in ("bn254", "bls12_381"):
        made = key(curve, SNARKJS)
        files[f"{curve}.proof.json"] = snarkjs_json.proof_json(proof(curve, made))
        files[f"{curve}.public.json"] = snarkjs_json.public_json(public(curve))
        files[f"{curve}.vk.json"] = snarkjs_json.verification_key_json(made.vk)
    made = key(BLS12_381.name, BELLMAN)
    files["cubic.params"] = b"".join(bellman.params_chunks(made))
    files["cubic.vk"] = bellman.vk_bytes(made.vk, made.beta_g1, made.delta_g1)
    files["cubic.proof"] = bellman.write_proof_bytes(proof(BLS12_381.name, made))
    return files


def corpus(name: str) -> bytes:
    return (CORPUS / name).read_bytes()


if __name__ == "__main__":
    CORPUS.mkdir(parents=True, exist_ok=True)
    for name, content in contents().items():
        (CORPUS / name).write_bytes(content)
