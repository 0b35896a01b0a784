"""Files and proofs go between cuzk and snarkjs in both directions.

snarkjs makes powers and keys that we prove with, checks keys that we make (``zkey verify``), proves with
them, and is the verifier of our proofs.
"""

from __future__ import annotations

import dataclasses
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import circuits
import cuzk
from cuzk.circuit import Circuit
from cuzk.curves import BN254, Curve
from cuzk.errors import CircuitError
from cuzk.formats.iden3.ptau import read_ptau, write_ptau
from cuzk.formats.iden3.r1cs import read_r1cs, write_r1cs
from cuzk.formats.iden3.wtns import write_wtns
from cuzk.formats.iden3.zkey_writer import write_zkey
from cuzk.formats.snarkjs_json import write_proof, write_public, write_verification_key
from cuzk.groth16 import PowersOfTau, ProvingKey
from cuzk.setup import contribute, initial_key, make_powers_of_tau, setup

pytestmark = pytest.mark.interop

MODULES = Path(__file__).resolve().parents[2] / "build" / "interop" / "node_modules"
POWER = 8
THREADS = 2


class Snarkjs:
    """Collects commands; ``run`` does them in one process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.commands: list[dict[str, Any]] = []

    def __call__(self, run: str, **options: Any) -> None:
        texts = {k: str(v) if isinstance(v, Path) else v for k, v in options.items()}
        self.commands.append({"run": run, **texts})

    def run(self) -> list[Any]:
        """The results, in order; a text is an exception's."""
        path = self.folder / "commands.json"
        path.write_text(json.dumps(self.commands))
        script = Path(__file__).parent / "snarkjs.mjs"
        node = ["node", "--no-warnings", str(script), str(MODULES), str(path)]
        subprocess.run(node, check=True, timeout=1200, capture_output=True)
        self.commands = []
        found = json.loads(path.with_name(path.name + ".results").read_text())
        return [entry["result"] for entry in found]


@pytest.fixture
def snarkjs(tmp_path: Path) -> Snarkjs:
    if shutil.which("node") is None or not (MODULES / "snarkjs").is_dir():
        pytest.skip(f"snarkjs is not there: {MODULES} (needs Node.js; `make interop` installs it)")
    return Snarkjs(tmp_path)


@pytest.fixture(scope="session")
def ceremonies() -> dict[str, tuple[bytes, bytes]]:
    """Per curve, a .ptau of snarkjs before and after `prepare phase2`; filled by ``powers``."""
    return {}


@pytest.fixture
def powers(
    curve: Curve, snarkjs: Snarkjs, tmp_path: Path, ceremonies: dict[str, tuple[bytes, bytes]]
) -> tuple[Path, Path]:
    """snarkjs' powers of tau with one contribution: (unprepared, prepared)."""
    raw, prepared = tmp_path / "raw.ptau", tmp_path / "prepared.ptau"
    if curve.name not in ceremonies:
        snarkjs("powers", curve=curve.snarkjs_name, power=POWER, out=raw, prepared=prepared)
        assert snarkjs.run() == [True]
        ceremonies[curve.name] = raw.read_bytes(), prepared.read_bytes()
    else:
        raw.write_bytes(ceremonies[curve.name][0])
        prepared.write_bytes(ceremonies[curve.name][1])
    return raw, prepared


def write_circuit(folder: Path, name: str, circuit: Circuit) -> tuple[Path, Path]:
    r1cs, witness = folder / f"{name}.r1cs", folder / f"{name}.wtns"
    write_r1cs(r1cs, circuit.matrices())
    write_wtns(witness, circuit.witness())
    return r1cs, witness


def prove_here(snarkjs: Snarkjs, name: str, key: ProvingKey | Path, circuit: Circuit) -> None:
    """A proof of ours, and the command that verifies it."""
    with cuzk.Prover(key, threads=THREADS) as prover:
        result = prover.prove(circuit.witness())
        vk = prover.key.vk
    assert result.public == circuit.public_values()
    paths = [snarkjs.folder / f"{name}.{part}.json" for part in ("vk", "public", "proof")]
    write_verification_key(paths[0], vk)
    write_public(paths[1], result.public)
    write_proof(paths[2], result.proof)
    snarkjs("verify", vk=paths[0], signals=paths[1], proof=paths[2])


def prove_there(snarkjs: Snarkjs, name: str, key: Path, witness: Path) -> tuple[Path, Path, Path]:
    """The command that makes and verifies a proof of snarkjs; its vk, public, proof."""
    vk, public, proof = (
        snarkjs.folder / f"{name}.{part}.json" for part in ("vk", "public", "proof")
    )
    snarkjs("prove", key=key, witness=witness, proof=proof, signals=public, vk=vk)
    return vk, public, proof


def verifies_here(curve: Curve, vk: Path, public: Path, proof: Path) -> bool:
    key = cuzk.load_verifying_key(vk)
    return cuzk.verify(key, cuzk.load_public(public, curve), cuzk.load_proof(proof))


def test_keys_of_snarkjs(
    curve: Curve, snarkjs: Snarkjs, powers: tuple[Path, Path], tmp_path: Path
) -> None:
    """Their powers and key, our proof, their verdict; and our key is theirs where nothing is random."""
    circuit = circuits.chain(curve, 30, public=3)
    r1cs, _ = write_circuit(tmp_path, "chain", circuit)
    key = tmp_path / "chain.zkey"
    snarkjs("key", r1cs=r1cs, ptau=powers[1], out=key)
    (circuit_hash,) = snarkjs.run()
    prove_here(snarkjs, "ours", key, circuit)
    wrong = tmp_path / "wrong.json"
    wrong.write_text(json.dumps([str(v + 1) for v in circuit.public_values()]))
    snarkjs(
        "verify", vk=tmp_path / "ours.vk.json", signals=wrong, proof=tmp_path / "ours.proof.json"
    )
    assert snarkjs.run() == [True, False]
    theirs = cuzk.load_key(tmp_path / "chain.zkey.0", insecure_key=True)
    ours = initial_key(read_r1cs(r1cs), read_ptau(powers[1]))
    assert ours.ceremony is not None
    assert ours.ceremony.circuit_hash.hex() == circuit_hash
    for mine, other in (
        (ours.vk.ic, theirs.vk.ic),
        (ours.a.points, theirs.a.points),
        (ours.b_g1.points, theirs.b_g1.points),
        (ours.b_g2.points, theirs.b_g2.points),
        (ours.l.points, theirs.l.points),
        (ours.h, theirs.h),
    ):
        assert mine.words.tobytes() == other.words.tobytes()


@pytest.mark.parametrize("prepared", [False, True], ids=["raw", "prepared"])
def test_keys_made_here(
    curve: Curve, snarkjs: Snarkjs, powers: tuple[Path, Path], tmp_path: Path, prepared: bool
) -> None:
    """snarkjs checks our key and its contributions, adds one, proves with it."""
    circuit = circuits.chain(curve, 20, public=2)
    r1cs, witness = write_circuit(tmp_path, "chain", circuit)
    first = setup(read_r1cs(r1cs), read_ptau(powers[prepared]), name="cuzk", threads=THREADS)
    one, two, three = (tmp_path / f"{n}.zkey" for n in (1, 2, 3))
    write_zkey(one, first)
    write_zkey(two, contribute(first, threads=THREADS))
    forged = dataclasses.replace(first, h=contribute(first, x=2).h)
    write_zkey(tmp_path / "forged.zkey", forged)
    for path in (one, two, tmp_path / "forged.zkey"):
        snarkjs("check_key", r1cs=r1cs, ptau=powers[1], key=path)
    snarkjs("contribute", key=two, out=three)
    snarkjs("check_key", r1cs=r1cs, ptau=powers[1], key=three)
    files = prove_there(snarkjs, "theirs", two, witness)
    assert snarkjs.run() == [True, True, False, True, True, True]
    assert verifies_here(curve, *files)
    # ... and a contribution of ours on top of theirs
    write_zkey(tmp_path / "4.zkey", contribute(cuzk.load_key(three), name="again"))
    snarkjs("check_key", r1cs=r1cs, ptau=powers[1], key=tmp_path / "4.zkey")
    prove_here(snarkjs, "ours", tmp_path / "4.zkey", circuit)
    assert snarkjs.run() == [True, True]


def test_powers_made_here(curve: Curve, snarkjs: Snarkjs, tmp_path: Path) -> None:
    circuit = circuits.chain(curve, 20)
    r1cs, witness = write_circuit(tmp_path, "chain", circuit)
    for power in (5, 6):  # just enough, and more
        ptau, key = tmp_path / f"{power}.ptau", tmp_path / f"{power}.zkey"
        write_ptau(ptau, make_powers_of_tau(curve, power))
        snarkjs("key", r1cs=r1cs, ptau=ptau, out=key)
        snarkjs("check_key", r1cs=r1cs, ptau=ptau, key=key)
        prove_there(snarkjs, f"theirs{power}", key, witness)
    results = snarkjs.run()
    assert results[1:3] + results[4:] == [True] * 4
    for power in (5, 6):
        prove_here(snarkjs, f"ours{power}", tmp_path / f"{power}.zkey", circuit)
    assert snarkjs.run() == [True, True]


def filled(curve: Curve, rows: int) -> Circuit:
    """A circuit whose constraints, public signals and constant make that many rows."""
    public = 1 if rows > 3 else 0
    return circuits.chain(curve, rows - public - 1, public=public)


@pytest.mark.parametrize("log_n", range(1, 9))
def test_every_filling_of_the_domain(
    curve: Curve, log_n: int, snarkjs: Snarkjs, tmp_path: Path
) -> None:
    n = 1 << log_n
    ptau = make_powers_of_tau(curve, log_n + 1, threads=THREADS)
    write_ptau(tmp_path / "powers.ptau", ptau)
    for rows in (n - 1, n, n + 1):
        if rows < 2:
            continue
        circuit = filled(curve, rows)
        matrices = circuit.matrices()
        assert (matrices.rows, matrices.log_domain) == (rows, log_n + (rows > n) - (2 * rows <= n))
        r1cs, _ = write_circuit(tmp_path, f"{rows}", circuit)
        key = setup(matrices, ptau, threads=THREADS)
        prove_here(snarkjs, f"{rows}", key, circuit)
        if log_n <= 4:
            write_zkey(tmp_path / f"{rows}.zkey", key)
            snarkjs(
                "check_key", r1cs=r1cs, ptau=tmp_path / "powers.ptau", key=tmp_path / f"{rows}.zkey"
            )
    expect_too_small(circuit, ptau, curve)
    assert set(snarkjs.run()) == {True}


def expect_too_small(circuit: Circuit, ptau: PowersOfTau, curve: Curve) -> None:
    power = circuit.matrices().log_domain
    small = make_powers_of_tau(curve, power - 1)
    assert ptau.power >= power
    with pytest.raises(CircuitError, match=f"expected power {power} or more"):
        setup(circuit.matrices(), small)


HASHER = """pragma circom 2.0.0;
include "circomlib/circuits/poseidon.circom";
template Pair() {
    signal input left;
    signal input right;
    signal output hash;
    component poseidon = Poseidon(2);
    poseidon.inputs[0] <== left;
    poseidon.inputs[1] <== right;
    hash <== poseidon.out;
}
component main {public [right]} = Pair();
"""


def test_circuits_of_circom(
    curve: Curve, snarkjs: Snarkjs, powers: tuple[Path, Path], tmp_path: Path
) -> None:
    """circom's .r1cs and witness, circomlib's constants: both keys prove, both verifiers agree."""
    (tmp_path / "pair.circom").write_text(HASHER)
    (tmp_path / "input.json").write_text(json.dumps({"left": "3", "right": "50"}))
    command = [
        "node",
        str(MODULES / "circom2" / "cli.js"),
        "pair.circom",
        "--r1cs",
        "--wasm",
        "--O2",
    ]
    command += ["-p", curve.snarkjs_name]
    # The compiler runs in a sandbox that sees the current folder.
    shutil.copytree(MODULES / "circomlib" / "circuits", tmp_path / "circomlib" / "circuits")
    subprocess.run(command, check=True, timeout=300, capture_output=True, cwd=tmp_path)
    r1cs, witness = tmp_path / "pair.r1cs", tmp_path / "pair.wtns"
    wasm = tmp_path / "pair_js" / "pair.wasm"
    input_values = json.loads((tmp_path / "input.json").read_text())
    snarkjs("witness", wasm=wasm, input=input_values, out=witness)
    snarkjs("key", r1cs=r1cs, ptau=powers[1], out=tmp_path / "theirs.zkey")
    assert snarkjs.run()[0] is True
    write_zkey(
        tmp_path / "ours.zkey", setup(read_r1cs(r1cs), read_ptau(powers[1]), threads=THREADS)
    )
    snarkjs("check_key", r1cs=r1cs, ptau=powers[1], key=tmp_path / "ours.zkey")
    files = prove_there(snarkjs, "there", tmp_path / "ours.zkey", witness)
    for name in ("ours", "theirs"):
        with cuzk.Prover(tmp_path / f"{name}.zkey", circuit=r1cs, threads=THREADS) as prover:
            result = prover.prove(witness)
            write_verification_key(tmp_path / f"{name}.vk.json", prover.key.vk)
        assert result.public[1:] == [50]
        write_public(tmp_path / f"{name}.public.json", result.public)
        write_proof(tmp_path / f"{name}.proof.json", result.proof)
        parts = [tmp_path / f"{name}.{part}.json" for part in ("vk", "public", "proof")]
        snarkjs("verify", vk=parts[0], signals=parts[1], proof=parts[2])
    assert snarkjs.run() == [True] * 4
    assert verifies_here(curve, *files)


@pytest.mark.slow
@pytest.mark.parametrize("power", [15, 16])
def test_circuit_hash_of_large_domains(power: int, snarkjs: Snarkjs, tmp_path: Path) -> None:
    """From 2^15 on snarkjs hashes one more power than counted, from outside its section at 2^power."""
    circuit = circuits.chain(BN254, (1 << 15) - 2)
    r1cs, _ = write_circuit(tmp_path, "chain", circuit)
    ptau = make_powers_of_tau(BN254, power, threads=THREADS)
    write_ptau(tmp_path / "powers.ptau", ptau)
    key = setup(circuit.matrices(), ptau, threads=THREADS)
    assert key.log_domain == 15
    write_zkey(tmp_path / "chain.zkey", key)
    snarkjs("check_key", r1cs=r1cs, ptau=tmp_path / "powers.ptau", key=tmp_path / "chain.zkey")
    assert snarkjs.run() == [True]
