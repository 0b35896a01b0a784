"""cuzk: a Groth16 proving engine.

    key = cuzk.load_key("circuit.zkey")
    with cuzk.Prover(key) as prover:
        result = prover.prove("witness.wtns")
    vk = cuzk.load_verifying_key("verification_key.json")
    cuzk.verify(vk, result.public, result.proof)  # True

Names are loaded when first used, so that ``import cuzk`` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cuzk.circuit import Circuit
    from cuzk.curves import BLS12_381, BN254
    from cuzk.errors import CuzkError
    from cuzk.groth16 import Proof, ProvingKey, VerifyingKey
    from cuzk.load import (
        load_circuit,
        load_key,
        load_proof,
        load_public,
        load_verifying_key,
        load_witness,
    )
    from cuzk.primitives import msm, ntt
    from cuzk.prover.evaluations import Evaluations
    from cuzk.prover.prepare import prepare_key
    from cuzk.prover.report import Report
    from cuzk.prover.session import Prover, Result
    from cuzk.verifier import verify, verify_batch

__version__ = "0.1.0"

__all__ = [
    "BLS12_381",
    "BN254",
    "Circuit",
    "CuzkError",
    "Evaluations",
    "Proof",
    "Prover",
    "ProvingKey",
    "Report",
    "Result",
    "VerifyingKey",
    "load_circuit",
    "load_key",
    "load_proof",
    "load_public",
    "load_verifying_key",
    "load_witness",
    "msm",
    "ntt",
    "prepare_key",
    "verify",
    "verify_batch",
]

_HOME = {
    "cuzk.circuit": ("Circuit",),
    "cuzk.curves": ("BLS12_381", "BN254"),
    "cuzk.errors": ("CuzkError",),
    "cuzk.groth16": ("Proof", "ProvingKey", "VerifyingKey"),
    "cuzk.load": (
        "load_circuit",
        "load_key",
        "load_proof",
        "load_public",
        "load_verifying_key",
        "load_witness",
    ),
    "cuzk.primitives": ("msm", "ntt"),
    "cuzk.prover.evaluations": ("Evaluations",),
    "cuzk.prover.prepare": ("prepare_key",),
    "cuzk.prover.report": ("Report",),
    "cuzk.prover.session": ("Prover", "Result"),
    "cuzk.verifier": ("verify", "verify_batch"),
}


def __getattr__(name: str) -> object:
    for module, names in _HOME.items():
        if name in names:
            value: object = getattr(import_module(module), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module 'cuzk' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
