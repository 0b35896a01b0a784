"""Proofs that the world made, under the keys that the world uses: zcash's mainnet and Filecoin's 32 GiB sectors.

Filecoin's proofs with public inputs of our own: filecoin/test_real_filecoin_proofs.py.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from cuzk.curves import BLS12_381
from cuzk.errors import CircuitError, FormatError
from cuzk.formats import bellman
from cuzk.verifier import Verifier
from proof_files import EQUATION, Bytes, Case, ProofFile, prf_file

R = BLS12_381.r
JUBJUB_D = -10240 * pow(10241, -1, R) % R
BLOCKS = ["0-419-201", "0-419-202", "0-653-601", "0-903-000", "0-903-001"]


# zcash: the shielded outputs of version 4 transactions (ZIP 243)


@dataclass(frozen=True)
class Output:
    cv: bytes
    cmu: bytes
    ephemeral_key: bytes
    proof: bytes

    def public(self) -> list[int]:
        cmu = int.from_bytes(self.cmu, "little")
        return [*jubjub(self.cv), *jubjub(self.ephemeral_key), cmu]

    def statement(self) -> Case:
        return self.public(), bellman.read_proof_bytes(self.proof)


def square_root(a: int) -> int:
    """Tonelli and Shanks modulo r, whose r - 1 is divisible by 2^32."""
    odd, levels = (R - 1) >> 32, 32
    z, x, t = pow(5, odd, R), pow(a, (odd + 1) // 2, R), pow(a, odd, R)
    while t != 1:
        order, power = 0, t
        while power != 1:
            power, order = power * power % R, order + 1
        if order >= levels:
            raise ValueError("no square")
        factor = pow(z, 1 << (levels - order - 1), R)
        x, z = x * factor % R, factor * factor % R
        t, levels = t * z % R, order
    return x


def jubjub(data: bytes) -> tuple[int, int]:
    """(u, v) on -u^2 + v^2 = 1 + d u^2 v^2 from v with u's lowest bit on top."""
    number = int.from_bytes(data, "little")
    v, odd = number & (2**255 - 1), number >> 255
    u = square_root((v * v - 1) * pow(1 + JUBJUB_D * v * v, -1, R) % R)
    if u & 1 != odd:
        u = R - u
    assert (v * v - u * u - 1 - JUBJUB_D * u * u * v * v) % R == 0
    return u, v


def outputs_of(block: bytes) -> Iterator[Output]:
    reader = Bytes(block)
    reader.take(140)
    reader.take(reader.compact())  # Equihash solution
    for _ in range(reader.compact()):
        yield from transaction(reader)
    assert reader.offset == len(block)


def transaction(reader: Bytes) -> list[Output]:
    assert struct.unpack("<II", reader.take(8)) == (0x80000004, 0x892F2085)  # version 4, Sapling
    for tail in (4, 0):
        for _ in range(reader.compact()):
            reader.take(36 if tail else 8)  # an input's outpoint, an output's value
            reader.take(reader.compact() + tail)
    reader.take(16)  # lock time, expiry height, value balance
    spends = reader.compact()
    reader.take(384 * spends)
    outputs = []
    for _ in range(reader.compact()):
        cv, cmu, key = (reader.take(32) for _ in range(3))
        reader.take(580 + 80)
        outputs.append(Output(cv, cmu, key, reader.take(192)))
    joins = reader.compact()
    reader.take(1698 * joins + (96 if joins else 0) + (64 if spends or outputs else 0))
    return outputs


@pytest.fixture(scope="module")
def sapling(fixtures: Path) -> Verifier:
    return Verifier(bellman.read_vk(fixtures / "zcash/sapling-output.params"))


@pytest.fixture(scope="module")
def outputs(fixtures: Path) -> list[Output]:
    blocks = [fixtures / f"zcash/block-main-{name}.txt" for name in BLOCKS]
    return [o for path in blocks for o in outputs_of(bytes.fromhex(path.read_text()))]


def test_sapling_outputs_of_mainnet_blocks(sapling: Verifier, outputs: list[Output]) -> None:
    assert len(outputs) == 23
    for output in outputs:
        assert sapling.check(*output.statement()) == ""
    assert sapling.verify_batch([output.statement() for output in outputs])


def test_tampered_sapling_outputs(sapling: Verifier, outputs: list[Output]) -> None:
    first, second = outputs[:2]
    public, proof = first.statement()
    for index in range(5):
        wrong = [*public]
        wrong[index] = (wrong[index] + 1) % R
        assert sapling.check(wrong, proof) == EQUATION
    assert not sapling.verify(public, second.statement()[1])
    assert not sapling.verify(public, replace(proof, c=proof.a))
    statements = [output.statement() for output in outputs]
    statements[1] = (public, statements[1][1])
    assert not sapling.verify_batch(statements)
    assert sapling.failing(statements) == [(1, EQUATION)]


def test_v1_v3_public_inputs_of_a_real_proof(sapling: Verifier, outputs: list[Output]) -> None:
    public, proof = outputs[0].statement()
    with pytest.raises(FormatError, match="public input 5: expected a value below r"):
        sapling.verify([*public[:4], public[4] + R], proof)
    for wrong in (public[:4], [*public, 0], []):
        with pytest.raises(CircuitError, match=f"expected 5.*found {len(wrong)}"):
            sapling.verify(wrong, proof)


# Filecoin


@pytest.fixture(scope="module")
def seal(fixtures: Path) -> ProofFile:
    return prf_file((fixtures / "filecoin/seal32_x10.prf").read_bytes())


@pytest.fixture(scope="module")
def sealed(seal: ProofFile) -> Verifier:
    return Verifier(seal.vk, threads=2)


def test_ten_seal_proofs_of_a_32_gib_sector(seal: ProofFile, sealed: Verifier) -> None:
    statements = seal.statements()
    assert len(statements) == 10
    assert sealed.vk.public == 327
    for statement in statements:
        assert sealed.check(*statement) == ""
    assert sealed.verify_batch(statements)
    assert sealed.failing(statements) == []


def test_l12_swapped_partitions_are_named(seal: ProofFile, sealed: Verifier) -> None:
    statements = seal.statements()
    statements[2], statements[7] = (
        (statements[2][0], statements[7][1]),
        (statements[7][0], statements[2][1]),
    )
    assert not sealed.verify_batch(statements)
    assert sealed.failing(statements) == [(2, EQUATION), (7, EQUATION)]


def test_l12_one_bit_of_comm_r(seal: ProofFile, sealed: Verifier) -> None:
    """Public inputs begin with replica_id, comm_d, comm_r."""
    statements = seal.statements()
    public, proof = statements[4]
    wrong = list(public)
    wrong[2] ^= 1
    statements[4] = (wrong, proof)
    assert sealed.check(wrong, proof) == EQUATION
    assert sealed.failing(statements) == [(4, EQUATION)]


def test_l10_a_file_of_nine_and_a_half_proofs(seal: ProofFile) -> None:
    blob = b"".join(seal.proofs)
    with pytest.raises(FormatError, match=r"expected 1920 bytes \(10 of 192\), found 1919"):
        bellman.read_partition_proofs(blob[:-1], 10)


def test_a_bit_of_a_proof_is_no_point_or_no_proof(seal: ProofFile, sealed: Verifier) -> None:
    """x + 1 is on the curve for half of all x: both outcomes occur among ten proofs."""
    outcomes = set()
    for public, data in zip(seal.publics, seal.proofs, strict=True):
        changed = data[:47] + bytes([data[47] ^ 1]) + data[48:]
        try:
            outcomes.add(sealed.check(public, bellman.read_proof_bytes(changed)))
        except FormatError as error:
            outcomes.add(str(error).split(" ")[0])
    assert "" not in outcomes
    assert "proof:" in outcomes
