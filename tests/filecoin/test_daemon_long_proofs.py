"""PoRep and SnapDeals of 2 KiB through ``cuzk serve``, asked as Curio asks: millions of rows, minutes, gigabytes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from curio import Curio, porep, snap
from made_sectors import updated
from made_updates import update_blobs
from own_files import circuit

from cuzk.filecoin.key_sizes import proving_bytes
from cuzk.filecoin.own_keys import own_key, write_key
from cuzk.filecoin.parameters import parameters_named
from cuzk.filecoin.registered import UPDATE, registered
from cuzk.filecoin.shapes import SHAPES
from cuzk.filecoin.statement import SealStatement, Statement, UpdateStatement
from cuzk.filecoin.vanilla import read_update
from cuzk.filecoin.verify import check_proof
from cuzk.formats.bellman import read_vk
from cuzk.server.proving_pb2 import AwaitProofResponse, SubmitProofRequest
from cuzk.verifier import Verifier
from daemon_process import Served, serve
from proof_files import EQUATION

SEAL_2KIB = registered("seal", "StackedDrg2KiBV1_1")
LONG = 900.0  # seconds


def test_updates_as_they_are_handed_over() -> None:
    """What is written here is what was made."""
    for proof in (UPDATE[0], replace(UPDATE[0], shape=SHAPES["16KiB"])):
        made, _ = updated(proof, proof.shape.update_h_values[0])
        read = read_update(update_blobs(made), proof)
        assert (read.comm_c, read.comm_d_new) == (made.comm_c, made.comm_d_new)
        assert read.comm_r_last_old == made.comm_r_last_old
        assert read.comm_r_last_new == made.comm_r_last_new
        assert read.apex_leaves.tobytes() == made.apex_leaves.tobytes()
        for name in ("replica_old", "data_new", "replica_new"):
            for part in ("leaf", "siblings", "index"):
                ours, theirs = (getattr(getattr(u, name), part) for u in (read, made))
                assert (ours == theirs).all(), (name, part)


@contextmanager
def served(name: str, folder: Path) -> Iterator[tuple[Served, Curio, Verifier]]:
    """A daemon with a new key of this circuit."""
    files = write_key(own_key(circuit(name), threads=2), parameters_named(name), folder)
    path = folder / "cuzk.toml"
    path.write_text(
        f'[daemon]\nstate = "{folder}/state"\n[devices]\nuse = ["cpu"]\nthreads = 2\n'
        f'[filecoin]\nparameters = "{folder}"\ninsecure_keys = true\n'
        f'[[circuit]]\nid = "{name}"\nkind = "filecoin"\n'
    )
    try:
        with serve("--config", path) as daemon, Curio(daemon.address, seconds=LONG) as client:
            yield daemon, client, Verifier(read_vk(files["vk"]), insecure_key=True, threads=2)
    finally:
        files["params"].unlink()


def proved(
    client: Curio, request: SubmitProofRequest, verifier: Verifier, statement: Statement
) -> bytes:
    """192 bytes that verify; asked again, the same ones."""
    result = client.prove(request)
    assert (result.status, result.error_message) == (AwaitProofResponse.COMPLETED, "")
    assert len(result.proof) == 192
    assert check_proof(verifier, statement, result.proof) == ""
    again = client.prove(request)
    assert (again.status, again.proof) == (AwaitProofResponse.COMPLETED, result.proof)
    assert client.completed() == 1
    return bytes(result.proof)


def peak(daemon: Served) -> int:
    """Bytes: the most that one of the daemon's processes had resident."""
    found = []
    for process in daemon.processes():
        status = Path(f"/proc/{process.pid}/status").read_text()
        line = next((row for row in status.splitlines() if row.startswith("VmHWM:")), "VmHWM: 0")
        found.append(int(line.split()[1]) << 10)
    return max(found)


@pytest.mark.slow
@pytest.mark.filecoin
def test_porep(fixtures: Path, tmp_path: Path) -> None:
    """From serde's JSON in base64 in a wrapper; beside the key's points, once, nothing but vectors is held."""
    c1 = (fixtures / "filecoin" / "c1-2KiB.json").read_bytes()
    case = json.loads((fixtures / "filecoin" / "c1-2KiB.public.json").read_text())
    named = ("replica_id", "comm_d", "comm_r", "seed", "porep_id")
    replica_id, comm_d, comm_r, seed, porep_id = (bytes.fromhex(case[name]) for name in named)
    statement = SealStatement(SEAL_2KIB, replica_id, comm_d, comm_r, seed, porep_id)
    with served("porep-2KiB", tmp_path) as (daemon, client, verifier):
        request = porep(SEAL_2KIB, c1, case["sector"])
        assert (request.request_id, request.registered_proof) == ("porep-1000-1", 5)
        data = proved(client, request, verifier, statement)
        for name in named:
            other = replace(statement, **{name: bytes(31) + b"\1"})  # type: ignore[arg-type]
            assert check_proof(verifier, other, data) == EQUATION, name
        assert peak(daemon) < 1.1 * proving_bytes(circuit("porep-2KiB"))


@pytest.mark.slow
@pytest.mark.filecoin
def test_snap(tmp_path: Path) -> None:
    """Also without a sector size, as from the proving marketplace."""
    made, (old, data_new, new) = updated(UPDATE[0], UPDATE[0].shape.update_h_values[0])
    statement = UpdateStatement(UPDATE[0], old, data_new, new)
    with served("update-2KiB", tmp_path) as (_, client, verifier):
        request = snap(UPDATE[0], update_blobs(made), 7, (old, new, data_new))
        assert (request.request_id, request.registered_proof) == ("snap-1000-7", 0)
        request.ClearField("sector_size")
        request.request_id = "ps-snap-1000-7-99"
        data = proved(client, request, verifier, statement)
        for name in ("comm_r_old", "comm_d_new", "comm_r_new"):
            other = replace(statement, **{name: (1).to_bytes(32, "little")})  # type: ignore[arg-type]
            assert check_proof(verifier, other, data) == EQUATION, name
        wrong = snap(UPDATE[0], update_blobs(made), 8, (new, old, data_new))
        result = client.prove(wrong)
        assert (result.status, result.error_code) == (AwaitProofResponse.FAILED, "unsatisfied")
        assert "comm_r" in result.error_message
