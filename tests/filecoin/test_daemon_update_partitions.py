"""One proof of two partitions through ``cuzk serve``: the daemon killed after the first, a wrong last one."""

from __future__ import annotations

import sqlite3
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import grpc
import pytest
from curio import Curio, snap
from made_sectors import updated
from made_updates import update_blobs

from cuzk.filecoin.own_keys import own_key, write_key
from cuzk.filecoin.parameters import Parameters
from cuzk.filecoin.registered import UPDATE, Kind
from cuzk.filecoin.statement import UpdateStatement
from cuzk.filecoin.templates.catalogue import circuit_of
from cuzk.filecoin.vanilla import UpdatePartitions
from cuzk.filecoin.verify import check_proof
from cuzk.formats.bellman import read_vk
from cuzk.server.client import Client
from cuzk.server.proving_pb2 import AwaitProofResponse
from cuzk.verifier import Verifier
from daemon_process import serve
from proof_files import EQUATION
from until import until

PARTED = replace(UPDATE[0], shape=replace(UPDATE[0].shape, update_partitions=2))
"""As in :mod:`parted_updates`, which is not for this process."""
PROGRAM = (sys.executable, Path(__file__).with_name("serve_parted.py"))
LONG = 900.0  # seconds


def in_journal(state: Path) -> dict[int, bytes]:
    """Proofs of partitions: what is shown as done may still be on its way there."""
    uri = f"file:{state}/journal.sqlite?mode=ro"
    with closing(sqlite3.connect(uri, uri=True)) as database:
        return dict(database.execute("SELECT number, proof FROM parts"))


def wrong_last(update: UpdatePartitions) -> list[bytes]:
    """A sibling on a path of the last partition is another."""
    siblings = update.data_new.siblings.copy()
    siblings[-1, 3, 2, 0] ^= 1
    return update_blobs(replace(update, data_new=replace(update.data_new, siblings=siblings)))


@pytest.mark.slow
@pytest.mark.filecoin
def test_an_update_of_two_partitions(tmp_path: Path) -> None:
    """The first proof is the one that the journal had; both in their order verify, the other way round they do not."""
    files = Parameters(Kind.UPDATE, PARTED.shape)
    written = write_key(own_key(circuit_of(files), threads=2), files, tmp_path)
    path = tmp_path / "cuzk.toml"
    path.write_text(
        f'[daemon]\nstate = "{tmp_path}/state"\n[devices]\nuse = ["cpu"]\nthreads = 2\nlanes = 1\n'
        f'[filecoin]\nparameters = "{tmp_path}"\ninsecure_keys = true\n'
        '[[circuit]]\nid = "update-2KiB"\nkind = "filecoin"\n'
    )
    home = {"HOME": str(tmp_path)}
    made, (old, data_new, new) = updated(PARTED, 1)
    request = snap(PARTED, update_blobs(made), 7, (old, new, data_new))
    assert len(request.vanilla_proofs) == 2

    def states(client: Client) -> list[str]:
        job = next(row for row in client.status()["jobs"] if row["id"] == request.request_id)
        return [part["state"] for part in job["partitions"]]

    with ThreadPoolExecutor(1) as threads:
        with (
            serve("--config", path, program=(*PROGRAM, tmp_path), variables=home) as first,
            Curio(first.address, seconds=LONG) as curio,
            Client(first.address) as client,
        ):
            wrong = curio.prove(snap(PARTED, wrong_last(made), 8, (old, new, data_new)))
            assert (wrong.status, wrong.error_code) == (AwaitProofResponse.FAILED, "unsatisfied")
            assert wrong.error_message.startswith(
                "vanilla_proofs[1]: partition 1: challenge 3 (node "
            )
            waiting = threads.submit(curio.prove, request)
            until(lambda: client.status()["jobs"][0]["id"] == request.request_id)
            until((tmp_path / "second").exists, LONG)
            until(lambda: states(client) == ["done", "proving"], LONG)
            assert client.poll(request.request_id, 0.05) is None
            until(lambda: in_journal(tmp_path / "state"), LONG)
            kept = in_journal(tmp_path / "state")
            assert kept.keys() == {0}
            first.process.kill()
            with pytest.raises(grpc.RpcError) as lost:
                waiting.result(LONG)
            assert lost.value.code() is grpc.StatusCode.UNAVAILABLE
        (tmp_path / "go").touch()
        with (
            serve("--config", path, program=(*PROGRAM, tmp_path), variables=home) as second,
            Curio(second.address, seconds=LONG) as curio,
        ):
            result = curio.prove(request)
            assert (result.status, result.error_message) == (AwaitProofResponse.COMPLETED, "")
            assert second.process.poll() is None
    written["params"].unlink()
    assert result.proof[:192] == kept[0]
    verifier = Verifier(read_vk(written["vk"]), insecure_key=True, threads=2)
    statement = UpdateStatement(PARTED, old, data_new, new)
    assert check_proof(verifier, statement, result.proof) == ""
    swapped = result.proof[192:] + result.proof[:192]
    assert EQUATION in check_proof(verifier, statement, swapped)
