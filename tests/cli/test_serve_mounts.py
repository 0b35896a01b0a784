"""A key's mount that does not answer, against a daemon with one worker and real clients: only its own circuit waits."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from files import files
from hanging_mount import hung

import cuzk as library
from cuzk.curves import BN254
from cuzk.errors import NotReady
from cuzk.server.client import Client, ProofResult
from daemon_process import serve
from until import PATIENCE, until

PROGRAM = (sys.executable, Path(__file__).with_name("serve_mounted.py"))
LATE = r"its files have not answered for \d+ s: is a disk or a network mount away\?$"


def valid(result: ProofResult) -> bool:
    made = files("bn254")
    signals = library.load_public(result.public, BN254)
    proof = library.load_proof(result.proof, BN254)
    return library.verify(library.load_verifying_key(made.vk), signals, proof)


def test_one_mount_that_hangs(tmp_path: Path) -> None:
    """In a load, then in checks: jobs of another circuit are loaded, checked and proved by the same process meanwhile; the
    one that waited is proved when the mount is back."""
    made, away, silent = files("bn254"), tmp_path / "away", tmp_path / "silent"
    given = ["--device", "cpu", "--threads", "1", "--state", str(tmp_path / "state")]
    given += [word for name in ("good", "hangs") for word in ("--circuit", f"{name}={made.zkey}")]
    with (
        serve(*given, program=(*PROGRAM, tmp_path)) as served,
        Client(served.address, timeout=PATIENCE) as client,
        ThreadPoolExecutor(4) as threads,
    ):
        try:
            (worker,) = client.status()["workers"]
            client.preload("hangs")
            client.evict("hangs")
            away.touch()
            loading = threads.submit(client.preload, "hangs")
            until(lambda: hung(tmp_path) == [("open", worker["process"])])
            silent.touch()
            assert valid(client.prove_circuit("good", made.wtns))  # its key was nowhere
            with pytest.raises(NotReady, match=LATE):
                loading.result(PATIENCE)
            assert served.said(r"load of 'hangs' on cpu stands still, other keys are loaded beside")
            with pytest.raises(NotReady, match=LATE):
                client.submit_circuit("hangs", made.wtns)
            tiers = {key["circuit"]: key["tier"] for key in client.status()["keys"]}
            assert tiers == {"good": "hot", "hangs": "not ready"}

            away.unlink()
            silent.unlink()
            until(lambda: {key["tier"] for key in client.status()["keys"]} == {"hot"})
            assert valid(client.prove_circuit("hangs", made.wtns))
            away.touch()
            checks = [threads.submit(client.submit_circuit, "hangs", made.wtns) for _ in range(4)]
            checking = [("check", worker["process"])] * 2  # a circuit's threads for NORMAL requests
            until(lambda: hung(tmp_path)[1:] == checking)
            assert valid(client.prove_circuit("good", made.wtns))
            silent.touch()
            for each in checks:
                with pytest.raises(NotReady, match=LATE):
                    each.result(PATIENCE)
            away.unlink()
            silent.unlink()
            until(lambda: not any(key["fault"] for key in client.status()["keys"]))
            assert valid(client.prove_circuit("hangs", made.wtns))
            assert hung(tmp_path) == [
                ("open", worker["process"]),
                *checking,
            ]  # one load, and no key twice
            (after,) = client.status()["workers"]
            assert (after["process"], after["restarts"]) == (worker["process"], 0)
        finally:
            for gate in (away, silent):
                gate.unlink(missing_ok=True)
