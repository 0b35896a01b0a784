"""Proofs that other software made, with public inputs that are derived here.

Ten seal partitions, a WindowPoSt and a WinningPoSt of 32 GiB, with their keys (fil-blst); a PoRep and a WindowPoSt
of 2 KiB (polka-storage). For the two of 2 KiB all public data is known. The files of 32 GiB hold public inputs, not
what they were derived from: seed, randomness and sector numbers are missing, so challenges are taken from there.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cuzk.curves import BLS12_381
from cuzk.filecoin.derive import replica_id
from cuzk.filecoin.public import challenge_inputs, porep_inputs, post_inputs, window_inputs
from cuzk.filecoin.registered import SEAL, registered
from cuzk.formats import bellman
from cuzk.groth16 import Proof
from cuzk.vectors import Scalars, pack
from cuzk.verifier import Verifier
from proof_files import EQUATION, ProofFile, compressed_key, prf_file, winning_prf_file


def refused(verifier: Verifier, public: list[int], proof: Proof, places: list[int]) -> None:
    """The proof is not one of the statement in which one of these inputs is another."""
    for place in places:
        wrong = list(public)
        wrong[place] ^= 1
        assert verifier.check(wrong, proof) == EQUATION, place


# 2 KiB, all public data known


@pytest.fixture
def porep_2kib(fixtures: Path) -> dict[str, Any]:
    case: dict[str, Any] = json.loads((fixtures / "filecoin/porep-2KiB.json").read_bytes())
    named = ("prover_id", "ticket", "comm_d", "comm_r", "porep_id", "seed", "vk", "proof")
    return {**case, **{name: bytes.fromhex(case[name]) for name in named}}


def porep_public(case: dict[str, Any], **other: Any) -> list[int]:
    """``other``: public data in place of the real."""
    data = {**case, **other}
    ids = (data["prover_id"], data["sector"], data["ticket"], data["comm_d"], data["porep_id"])
    proof = registered("seal", data.get("registered", "StackedDrg2KiBV1_1"))
    values = (replica_id(*ids), data["comm_d"], data["comm_r"], data["seed"], 0)
    return porep_inputs(proof, *values, porep_id=data["porep_id"]).ints()


def test_porep_of_2_kib(porep_2kib: dict[str, Any]) -> None:
    verifier = Verifier(compressed_key(porep_2kib["vk"]))
    proof = bellman.read_proof_bytes(porep_2kib["proof"])
    public = porep_public(porep_2kib)
    assert len(public) == 39
    assert verifier.check(public, proof) == ""
    refused(verifier, public, proof, list(range(39)))
    flip = bytes([1]) + bytes(31)
    others: list[dict[str, Any]] = [
        {"sector": 78},
        {"registered": "StackedDrg2KiBV1"},
        *({name: bytes(32)} for name in ("ticket", "seed", "comm_r", "comm_d")),
        *({name: flip} for name in ("prover_id", "porep_id")),
    ]
    for other in others:
        assert verifier.check(porep_public(porep_2kib, **other), proof) == EQUATION, other


def test_window_post_of_2_kib(fixtures: Path) -> None:
    """One sector, which the circuit for two takes twice."""
    case = json.loads((fixtures / "filecoin/window-post-2KiB.json").read_bytes())
    verifier = Verifier(compressed_key(bytes.fromhex(case["vk"])))
    proof = bellman.read_proof_bytes(bytes.fromhex(case["proof"]))
    randomness, comm_r = bytes.fromhex(case["randomness"]), bytes.fromhex(case["comm_r"])
    window = registered("post", "StackedDrgWindow2KiBV1")
    sectors = [(case["sector"], comm_r)]
    public = window_inputs(window, randomness, sectors).ints()
    assert len(public) == 22
    assert verifier.check(public, proof) == ""
    refused(verifier, public, proof, list(range(22)))
    for other in (
        window_inputs(window, comm_r, sectors),
        window_inputs(window, randomness, [(case["sector"] + 1, comm_r)]),
        window_inputs(window, randomness, sectors, 1),
        window_inputs(window, randomness, sectors * 2),
    ):
        assert verifier.check(other, proof) == EQUATION
    newer = registered("post", "StackedDrgWindow2KiBV1_2")  # numbers the second sector's anew
    assert verifier.check(window_inputs(newer, randomness, sectors * 2), proof) == ""


# 32 GiB


@pytest.fixture(scope="module")
def seal(fixtures: Path) -> ProofFile:
    return prf_file((fixtures / "filecoin/seal32_x10.prf").read_bytes())


@pytest.fixture(scope="module")
def seal_publics(seal: ProofFile) -> list[Scalars]:
    """18 inputs for each challenge, of which the file says the first."""
    proof = registered("seal", "StackedDrg32GiBV1")
    publics = []
    for stored in seal.publics:
        challenges = np.array(stored[3::18], dtype=np.uint64)
        inputs = challenge_inputs(challenges, proof.shape.nodes, proof.porep_id(), proof.api)
        words = np.zeros((3 + inputs.size, 4), dtype=np.uint64)
        words[:3], words[3:, 0] = pack(stored[:3], 4), inputs.ravel()
        publics.append(Scalars(BLS12_381, words))
    return publics


def test_seal_partitions_of_32_gib(seal: ProofFile, seal_publics: list[Scalars]) -> None:
    verifier = Verifier(seal.vk, threads=2)
    proofs = [proof for _, proof in seal.statements()]
    statements = list(zip(seal_publics, proofs, strict=True))
    assert len(statements) == 10
    for statement in statements:
        assert verifier.check(*statement) == ""
    assert verifier.verify_batch(statements)
    # of each: replica id, comm_d, comm_r, the path in D, a DRG and an expander parent, node, paths in R_last and C
    kinds = [0, 1, 2, *(3 + 18 * 7 + k for k in (0, 3, 11, 15, 16, 17))]
    for public, proof in statements[:3]:
        refused(verifier, public.ints(), proof, kinds)
    for k, (public, _) in enumerate(statements):
        wrong = public.ints()
        wrong[kinds[k % len(kinds)]] += 1
        changed = [*statements]
        changed[k] = (wrong, statements[k][1])  # type: ignore[assignment]
        assert not verifier.verify_batch(changed), k


def test_seal_partitions_have_version_1_0_s_parents(seal: ProofFile) -> None:
    """Version 1.1 has another order and reaches all nodes: not those of these proofs."""
    challenges = np.array(seal.publics[0][3::18], dtype=np.uint64)
    newer = challenge_inputs(challenges, 1 << 30, SEAL[3].porep_id(), SEAL[8].api).ravel()
    verifier, (_, proof) = Verifier(seal.vk), seal.statements()[0]
    assert verifier.check([*seal.publics[0][:3], *newer.tolist()], proof) == EQUATION


def laid_out(stored: list[int], sectors: int, each: int) -> Scalars:
    """Inputs of a PoSt circuit from the comm_r and the challenges that a file holds."""
    rows = [stored[i : i + 1 + each] for i in range(0, len(stored), 1 + each)]
    challenges = np.array([row[1:] for row in rows], dtype=np.uint64)
    return post_inputs(pack([row[0] for row in rows], 4), challenges, sectors)


def test_winning_post_of_32_gib(fixtures: Path) -> None:
    file = winning_prf_file((fixtures / "filecoin/winning32.prf").read_bytes())
    ((stored, proof),) = file.statements()
    verifier = Verifier(file.vk, threads=2)
    assert len(set(stored[0::2])) == 1  # one sector
    assert max(stored[1::2]) < 1 << 30
    public = laid_out(stored, 66, 1)
    assert len(public) == 132
    assert verifier.check(public, proof) == ""
    refused(verifier, public.ints(), proof, [0, 1, 64, 65, 130, 131])


def test_window_post_of_32_gib(fixtures: Path) -> None:
    file = prf_file((fixtures / "filecoin/window.prf").read_bytes())
    ((stored, proof),) = file.statements()
    verifier = Verifier(file.vk, threads=2)
    public = laid_out(stored, 2349, 10)
    assert len(public) == 25_839
    assert verifier.check(public, proof) == ""
    refused(verifier, public.ints(), proof, [0, 25_838])
