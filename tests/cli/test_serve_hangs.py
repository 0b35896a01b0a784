"""What hangs and yet lives: a device's process, against a daemon in a process of its own and a real client."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import psutil
import pytest
from files import slow_files

import cuzk as library
from cuzk.curves import BN254
from cuzk.server.client import Client
from daemon_process import serve


@pytest.mark.slow
def test_a_worker_that_is_stopped_costs_no_proof(tmp_path: Path) -> None:
    """It is killed after ``devices.patience``; the job ends on the one that is started in its place."""
    key, witness = slow_files()
    (tmp_path / "cuzk.toml").write_text('[devices]\npatience = "5s"\nuse = ["cpu"]\nthreads = 1\n')
    given: list[str | Path] = ["--config", tmp_path / "cuzk.toml", "--state", tmp_path / "state"]
    with (
        serve(*given, "--circuit", f"c={key}") as served,
        Client(served.address, timeout=60) as client,
    ):
        client.prove_circuit("c", witness)
        (before,) = client.status()["workers"]
        os.kill(before["process"], signal.SIGSTOP)
        result = client.prove_circuit("c", witness)
        signals = library.load_public(result.public, BN254)
        proof = library.load_proof(result.proof, BN254)
        assert library.verify(library.load_verifying_key(key), signals, proof)
        (after,) = client.status()["workers"]
        assert (after["restarts"], before["restarts"]) == (1, 0)
        assert not psutil.pid_exists(before["process"])
        assert served.said(
            rf"worker cpu \(process {before['process']}\) died: killed, nothing was heard of it for 5 s"
        )
