"""Circuits of circomlib and keys of a real ceremony: each key's proofs verified by the other side, both ways.

Shapes: an output beside a hash (SHA-256 of one byte), nothing public, nothing private; and Semaphore's keys,
made years ago by another version of snarkjs in a ceremony of hundreds.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from test_snarkjs import MODULES, THREADS, Snarkjs, prove_there, verifies_here

import cuzk
from cuzk.curves import BN254, Curve
from cuzk.formats.iden3.frame import frame_chunks
from cuzk.formats.iden3.ptau import write_ptau
from cuzk.formats.iden3.r1cs import read_r1cs
from cuzk.formats.iden3.zkey import read_zkey_header
from cuzk.formats.iden3.zkey_header import zkey_frame
from cuzk.formats.iden3.zkey_writer import write_zkey
from cuzk.formats.snarkjs_json import write_proof, write_public, write_verification_key
from cuzk.formats.solidity import export_calldata
from cuzk.setup import make_powers_of_tau, setup

pytestmark = pytest.mark.interop

SEMAPHORE = MODULES / "@zk-kit" / "semaphore-artifacts"

SHA256 = """pragma circom 2.0.0;
include "circomlib/circuits/sha256/sha256.circom";
template Main() { signal input in[8]; signal output out[256];
    component hash = Sha256(8); hash.in <== in; out <== hash.out; }
component main = Main();
"""
NOTHING_PUBLIC = """pragma circom 2.0.0;
template Main() { signal input a; signal input b; signal c; c <== a * b; c * a === b + 1; }
component main = Main();
"""
NOTHING_PRIVATE = """pragma circom 2.0.0;
template Main() { signal input a; signal input b; signal output c; c <== a * b; }
component main {public [a, b]} = Main();
"""
BYTE = [0, 1, 1, 0, 0, 0, 0, 1]  # "a"
DIGEST = [int(bit) for byte in hashlib.sha256(b"a").digest() for bit in f"{byte:08b}"]


@pytest.fixture
def snarkjs(tmp_path: Path) -> Snarkjs:
    if shutil.which("node") is None or not (MODULES / "snarkjs").is_dir():
        pytest.skip(f"snarkjs is not there: {MODULES} (needs Node.js; `make interop` installs it)")
    return Snarkjs(tmp_path)


def compiled(folder: Path, curve: Curve, source: str) -> tuple[Path, Path]:
    """(.r1cs, .wasm) by circom 2."""
    (folder / "main.circom").write_text(source)
    if "circomlib" in source:  # the compiler runs in a sandbox that sees the current folder
        shutil.copytree(MODULES / "circomlib" / "circuits", folder / "circomlib" / "circuits")
    circom = ["node", str(MODULES / "circom2" / "cli.js"), "main.circom", "--r1cs", "--wasm"]
    command = [*circom, "--O1", "-p", curve.snarkjs_name]
    subprocess.run(command, check=True, timeout=300, capture_output=True, cwd=folder)
    return folder / "main.r1cs", folder / "main_js" / "main.wasm"


def prove_here(snarkjs: Snarkjs, name: str, key: Path, witness: Path) -> list[int]:
    """A proof of ours, and the commands that verify it and write its calldata."""
    with cuzk.Prover(key, threads=THREADS) as prover:
        result = prover.prove(witness)
        vk = prover.key.vk
    paths = [snarkjs.folder / f"{name}.{part}.json" for part in ("vk", "public", "proof")]
    write_verification_key(paths[0], vk)
    write_public(paths[1], result.public)
    write_proof(paths[2], result.proof)
    snarkjs("verify", vk=paths[0], signals=paths[1], proof=paths[2])
    if vk.curve is BN254:
        text = export_calldata(result.proof, result.public)
        snarkjs("calldata", signals=paths[1], proof=paths[2], text=text)
    return result.public


@pytest.mark.parametrize(
    ("source", "values", "power", "public"),
    [
        pytest.param(SHA256, {"in": BYTE}, 15, DIGEST, marks=pytest.mark.slow),
        (NOTHING_PUBLIC, {"a": "1", "b": None}, 3, []),
        (NOTHING_PRIVATE, {"a": "6", "b": "7"}, 3, [42, 6, 7]),
    ],
    ids=["sha256", "nothing-public", "nothing-private"],
)
def test_circuits_of_every_shape(
    curve: Curve,
    snarkjs: Snarkjs,
    tmp_path: Path,
    source: str,
    values: dict[str, Any],
    power: int,
    public: list[int],
) -> None:
    if source is NOTHING_PUBLIC:  # b a^2 = b + 1
        values = {"a": "2", "b": str(pow(3, -1, curve.r))}
    r1cs, wasm = compiled(tmp_path, curve, source)
    witness, ptau = tmp_path / "main.wtns", tmp_path / "powers.ptau"
    powers = make_powers_of_tau(curve, power, threads=THREADS)
    write_ptau(ptau, powers)
    write_zkey(tmp_path / "ours.zkey", setup(read_r1cs(r1cs), powers, threads=THREADS))
    snarkjs("witness", wasm=wasm, input=values, out=witness)
    keys = ["ours"]
    if power < 10 or curve is BN254:  # snarkjs takes minutes for SHA-256 on BLS12-381
        snarkjs("key", r1cs=r1cs, ptau=ptau, out=tmp_path / "theirs.zkey")
        keys.append("theirs")
    files = [prove_there(snarkjs, f"there.{k}", tmp_path / f"{k}.zkey", witness) for k in keys]
    results = snarkjs.run()
    assert results[0] is True
    assert results[-len(keys) :] == [True] * len(keys)
    for parts in files:
        assert json.loads(parts[1].read_text()) == [str(v) for v in public]
        assert verifies_here(curve, *parts)
    for name in keys:
        assert prove_here(snarkjs, name, tmp_path / f"{name}.zkey", witness) == public
    assert set(snarkjs.run()) == {True}


@pytest.mark.parametrize("depth", [1, 10, 16])
def test_keys_of_a_real_ceremony(snarkjs: Snarkjs, depth: int, tmp_path: Path) -> None:
    """CASES C9, and F1: the same key with its sections in another order."""
    if not SEMAPHORE.is_dir():
        pytest.skip(f"Semaphore's keys are not there: {SEMAPHORE} (`make interop` installs them)")
    key, witness = SEMAPHORE / f"semaphore-{depth}.zkey", tmp_path / "main.wtns"
    header = read_zkey_header(key)
    assert header.ceremony is not None
    assert len(header.ceremony.contributions) > 100
    assert header.warnings == ()
    values = {
        "secret": "71",
        "merkleProofLength": str(depth),
        "merkleProofIndex": "1",
        "merkleProofSiblings": [str(i + 5) for i in range(depth)],
        "message": "12",
        "scope": "34",
    }
    snarkjs("witness", wasm=key.with_suffix(".wasm"), input=values, out=witness)
    theirs = prove_there(snarkjs, "theirs", key, witness)
    assert snarkjs.run() == [True, True]
    assert verifies_here(BN254, *theirs)
    frame = zkey_frame(key)
    order = (10, 1, 2, 4, 3, 9, 8, 5, 6, 7)
    assert sorted(order) == sorted(frame.table)
    data = key.read_bytes()
    sections = [(n, [data[at : at + size]]) for n in order for at, size in [frame.table[n]]]
    permuted = tmp_path / "permuted.zkey"
    permuted.write_bytes(b"".join(frame_chunks("zkey", 1, sections)))
    for name, path in (("ours", key), ("permuted", permuted)):
        assert prove_here(snarkjs, name, path, witness)[2:] != []
    assert snarkjs.run() == [True] * 4
