"""A Prover over time: many proofs, several threads and processes, a key file that is cut or rewritten."""

from __future__ import annotations

import gc
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pytest

import cuzk
from circuits import chain
from cuzk.circuit import Circuit
from cuzk.curves import BN254, Curve
from cuzk.errors import OutOfMemory, ProofError
from cuzk.formats.iden3.zkey import read_zkey
from cuzk.formats.iden3.zkey_header import zkey_frame
from cuzk.formats.iden3.zkey_writer import write_zkey
from cuzk.groth16 import ProvingKey
from cuzk.prover.plan import installed_bytes
from cuzk.prover.report import STATUS
from cuzk.prover.session import Prover, Result
from cuzk.setup import Secrets, insecure_setup
from cuzk.verifier import verify

LARGE = 400  # constraints: H alone is several pages


def key_of(circuit: Circuit) -> ProvingKey:
    return insecure_setup(circuit.matrices(), Secrets.drawn(circuit.curve))


@pytest.fixture
def key_file(curve: Curve, tmp_path: Path) -> Path:
    path = tmp_path / "chain.zkey"
    write_zkey(path, key_of(chain(curve, LARGE)))
    return path


def test_a_file_cut_short_is_an_error(curve: Curve, key_file: Path) -> None:
    """Reading behind the new end of a mapped file kills the process: it must not come to that."""
    script = (
        "import os, sys, cuzk\n"
        "from circuits import chain\n"
        "from cuzk.curves import CURVES\n"
        "from cuzk.errors import CuzkError\n"
        f"witness = chain(CURVES[{curve.name!r}], {LARGE}).witness()\n"
        f"prover = cuzk.Prover({str(key_file)!r}, threads=1)\n"
        "prover.prove(witness)\n"
        f"os.truncate({str(key_file)!r}, 4096)\n"
        "try:\n"
        "    prover.prove(witness)\n"
        "except CuzkError as error:\n"
        "    print(error)\n"
    )
    path = os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])
    run = subprocess.run([sys.executable, "-c", script], env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False)  # fmt: skip
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.startswith("chain.zkey: expected ")
    assert "found 4096: the file was cut short while in use" in run.stdout


def rewrite(path: Path, content: bytes) -> None:
    with path.open("r+b") as file:
        file.write(content)


def test_a_file_rewritten_in_place_makes_no_wrong_proof(curve: Curve, key_file: Path) -> None:
    witness, before = chain(curve, LARGE).witness(), key_file.read_bytes()
    with Prover(key_file) as prover:
        vk = prover.key.vk
        rewrite(key_file, bytes(len(before)))
        with pytest.raises(ProofError):
            prover.prove(witness)
        rewrite(key_file, before)
        result = prover.prove(witness)
    assert verify(vk, result.public, result.proof)


def test_a_key_replaced_by_rename_does_not_disturb(curve: Curve, key_file: Path) -> None:
    """How every writer here does it: the old file lives as long as it is mapped."""
    with Prover(key_file) as prover:
        vk = prover.key.vk
        write_zkey(key_file, key_of(chain(curve, 2)))
        result = prover.prove(chain(curve, LARGE).witness())
    assert verify(vk, result.public, result.proof)


def test_a_sparse_key_of_the_largest_domain(tmp_path: Path) -> None:
    """16 GiB of H that take no disk: read at once, and refused before any work where it does not fit."""
    small, large = tmp_path / "small.zkey", tmp_path / "large.zkey"
    circuit = chain(BN254, 5)
    write_zkey(small, key_of(circuit))
    frame, domain = zkey_frame(small), 1 << BN254.two_adicity
    data, (header, _) = small.read_bytes(), frame.table[2]
    at = header + 2 * (4 + 32) + 8
    data = data[:at] + domain.to_bytes(4, "little") + data[at + 4 :]
    start, _ = frame.table[9]
    assert max(frame.table, key=lambda n: frame.table[n][0]) == 9
    large.write_bytes(data[: start - 8] + (64 * domain).to_bytes(8, "little"))
    os.truncate(large, start + 64 * domain)
    begin = process_time()
    with pytest.raises(OutOfMemory, match="the limit is 1073741824"):
        Prover(large, memory=1 << 30)
    if installed_bytes() < 3 * 32 * domain:
        with pytest.raises(OutOfMemory, match=r"domain of 2\^28 alone"):
            Prover(large)
    assert process_time() - begin < 2


def test_points_outlive_everything_that_made_them(key_file: Path) -> None:
    points = read_zkey(key_file).h
    expected = points.words.tobytes()
    key_file.unlink()
    gc.collect()
    assert points.words.tobytes() == expected
    again = pickle.loads(pickle.dumps(points))
    assert np.array_equal(again.words, points.words)


def test_threads_share_a_prover(curve: Curve) -> None:
    """They wait for each other; each gets the proof of its own statement."""
    circuits = [chain(curve, 20, seed=seed) for seed in range(2, 8)]
    found: dict[int, Result] = {}
    with Prover(key_of(circuits[0]), threads=2) as prover:

        def work(i: int) -> None:
            found[i] = prover.prove(circuits[i].witness())

        workers = [threading.Thread(target=work, args=(i,)) for i in range(len(circuits))]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        vk = prover.key.vk
    for i, circuit in enumerate(circuits):
        assert found[i].public == circuit.public_values()
        assert verify(vk, found[i].public, found[i].proof)


def test_a_phase_that_proves(curve: Curve) -> None:
    """on_phase may use the prover that calls it."""
    circuit = chain(curve, 5)
    begun, inner = threading.Event(), list[Result]()

    def on_phase(name: str) -> None:
        if name == "quotient" and not begun.is_set():
            begun.set()
            inner.append(prover.prove(circuit.witness()))

    prover = Prover(key_of(circuit), on_phase=on_phase)
    outer = prover.prove(circuit.witness())
    for result in (outer, inner[0]):
        assert verify(prover.key.vk, result.public, result.proof)


def _prove_and_send(prover: Prover, witness: Any, send: Callable[[Any], None]) -> None:
    result = prover.prove(witness)
    send((result.proof, result.public, result.report, prover.key.vk))


def test_a_forked_process_proves(curve: Curve, key_file: Path) -> None:
    """After import, loading and proofs; what it sends back is whole."""
    witness = chain(curve, LARGE).witness()
    with Prover(key_file, threads=2) as prover:
        first = prover.prove(witness)
        context = multiprocessing.get_context("fork")
        receiver, sender = context.Pipe(duplex=False)
        child = context.Process(target=_prove_and_send, args=(prover, witness, sender.send))
        child.start()
        assert receiver.poll(60)
        proof, public, report, vk = receiver.recv()
        child.join(60)
    assert child.exitcode == 0
    assert report.key == first.report.key
    assert verify(vk, public, proof)
    assert verify(prover._verifier.vk, public, proof)


def resident_bytes() -> int:
    (line,) = [x for x in STATUS.read_text().splitlines() if x.startswith("VmRSS:")]
    return int(line.split()[1]) << 10


@pytest.mark.slow
def test_two_hundred_proofs_take_the_memory_of_ten(tmp_path: Path) -> None:
    if not STATUS.exists():
        pytest.skip(f"{STATUS} is not there")
    key = tmp_path / "chain.zkey"
    circuit, others = chain(BN254, 2000), set(threading.enumerate())
    write_zkey(key, key_of(circuit))
    with cuzk.Prover(key) as prover:
        for _ in range(10):
            prover.prove(circuit.witness())
        before = resident_bytes()
        for _ in range(190):
            prover.prove(circuit.witness())
        grown = resident_bytes() - before
    assert grown < 2 << 20
    assert set(threading.enumerate()) <= others
