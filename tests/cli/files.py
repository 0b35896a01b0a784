"""Small circuits of both curves as files, made once per process: x^3 + x + 5 = out."""

from __future__ import annotations

import atexit
import shutil
import struct
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from circuits import chain, cubic
from cuzk.curves import CURVES, curve_named
from cuzk.formats.iden3.ptau import write_ptau
from cuzk.formats.iden3.r1cs import write_r1cs
from cuzk.formats.iden3.wtns import write_wtns
from cuzk.formats.iden3.zkey import read_zkey
from cuzk.formats.iden3.zkey_writer import write_zkey
from cuzk.formats.snarkjs_json import write_proof, write_public, write_verification_key
from cuzk.prover.session import Prover
from cuzk.setup import make_powers_of_tau, setup

POWER = 3


@dataclass(frozen=True)
class Files:
    """Paths of one circuit's files; ``false_witness`` breaks constraint 1."""

    r1cs: Path
    ptau: Path
    zkey: Path
    wtns: Path
    false_witness: Path
    vk: Path
    proof: Path
    public: Path


@cache
def folder() -> Path:
    path = Path(tempfile.mkdtemp(prefix="cuzk-cli-"))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


@cache
def files(name: str) -> Files:
    curve, place = curve_named(name), folder() / name
    place.mkdir()
    kinds = (
        "c.r1cs",
        "c.ptau",
        "c.zkey",
        "c.wtns",
        "false.wtns",
        "vk.json",
        "proof.json",
        "public.json",
    )
    made = Files(*(place / kind for kind in kinds))
    circuit = cubic(curve)
    matrices = circuit.matrices()
    write_r1cs(made.r1cs, matrices, outputs=1)
    write_wtns(made.wtns, circuit.witness())
    write_ptau(made.ptau, make_powers_of_tau(curve, POWER))
    key = setup(matrices, make_powers_of_tau(curve, POWER))
    write_zkey(made.zkey, key)
    write_verification_key(made.vk, read_zkey(made.zkey).vk)
    with Prover(key) as prover:
        result = prover.prove(circuit.witness())
    write_proof(made.proof, result.proof)
    write_public(made.public, result.public)
    broken = circuit.witness().ints()
    broken[3] += 1
    made.false_witness.write_bytes(wtns_bytes(name, broken))
    return made


@cache
def slow_files() -> tuple[Path, Path]:
    """Key and witness of a circuit on BN254 that a thread takes a tenth of a second for."""
    curve, place = curve_named("bn254"), folder() / "slow"
    place.mkdir()
    circuit = chain(curve, 1000)
    write_zkey(place / "slow.zkey", setup(circuit.matrices(), make_powers_of_tau(curve, 10)))
    write_wtns(place / "slow.wtns", circuit.witness())
    return place / "slow.zkey", place / "slow.wtns"


def wtns_bytes(name: str, values: list[int], version: int = 2) -> bytes:
    """A .wtns built field by field."""
    r = CURVES[name].r
    body = b"".join(value.to_bytes(32, "little") for value in values)
    header = struct.pack("<I", 32) + r.to_bytes(32, "little") + struct.pack("<I", len(values))
    sections = [(1, header), (2, body)]
    parts = [struct.pack("<IQ", number, len(content)) + content for number, content in sections]
    return b"wtns" + struct.pack("<II", version, 2) + b"".join(parts)


def sections(data: bytes) -> dict[int, tuple[int, int]]:
    """Section -> (offset of its content, length)."""
    table, at = {}, 12
    for _ in range(struct.unpack_from("<I", data, 8)[0]):
        number, length = struct.unpack_from("<IQ", data, at)
        table[number] = (at + 12, length)
        at += 12 + length
    return table
