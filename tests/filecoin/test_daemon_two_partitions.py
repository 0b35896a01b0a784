"""Jobs of two partitions through ``cuzk serve``, its process and its worker's: killed, cancelled, wrong in the last."""

from __future__ import annotations

import os
import sqlite3
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import grpc
import numpy as np
import psutil
import pytest
from curio import Curio, window
from made_posts import MadeSector, made_sector
from own_files import own_files, params_file
from twice import begun

from cuzk.errors import Cancelled
from cuzk.filecoin.openings import octree_segments
from cuzk.filecoin.registered import registered
from cuzk.filecoin.statement import PostStatement, Sector
from cuzk.filecoin.vanilla import post_layout
from cuzk.filecoin.verify import check_proof
from cuzk.formats.bellman import read_vk
from cuzk.server.client import Client
from cuzk.server.proving_pb2 import AwaitProofResponse, SubmitProofRequest
from cuzk.verifier import Verifier
from daemon_process import Served, serve
from proof_files import EQUATION
from until import until

WINDOW = registered("post", "StackedDrgWindow2KiBV1_1")  # as Go calls it
PROGRAM = (sys.executable, Path(__file__).with_name("serve_twice.py"))
SOON = 120.0


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder whose name is short enough for a socket's."""
    with TemporaryDirectory(prefix="cuzk-") as made:
        yield Path(made)


@contextmanager
def served(place: Path) -> Iterator[Served]:
    """The same journal and address each time."""
    path = place / "cuzk.toml"
    path.write_text(
        f'[daemon]\nlisten = "unix://{place}/s"\nstate = "{place}/state"\n'
        f'[devices]\nuse = ["cpu"]\nthreads = 2\nlanes = 1\n'
        f'[[circuit]]\nid = "window-2KiB"\nkind = "filecoin"\nkey = "{params_file("window-2KiB")}"\n'
        "insecure_key = true\n"
    )
    program = (*PROGRAM, place)
    with serve("--config", path, "--listen", f"unix://{place}/s", program=program) as daemon:
        assert daemon.address == f"unix://{place}/s"
        yield daemon


def asked(*numbers: int) -> tuple[SubmitProofRequest, bytes, list[MadeSector]]:
    """Under randomness, and so an id, that nobody else has."""
    randomness = os.urandom(31) + b"\0"
    sectors = [made_sector(WINDOW, number, randomness=randomness) for number in numbers]
    return window(WINDOW, [each.blob for each in sectors], randomness), randomness, sectors


def states(client: Client, job: str) -> list[str]:
    """Of the partitions that were begun."""
    rows: list[dict[str, Any]] = client.status()["jobs"]
    (found,) = (row for row in rows if row["id"] == job)
    assert found["partitions_total"] == 2
    return [part["state"] for part in found["partitions"]]


def in_journal(place: Path) -> list[int]:
    """Partitions whose proofs a kill does not take: what is shown as done may still be on its way there."""
    with closing(
        sqlite3.connect(f"file:{place}/state/journal.sqlite?mode=ro", uri=True)
    ) as database:
        return [number for (number,) in database.execute("SELECT number FROM parts")]


def is_gone(process: int) -> bool:
    """Ended; whether somebody asked how is no matter here."""
    try:
        return psutil.Process(process).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_a_daemon_that_is_killed_between_partitions(place: Path) -> None:
    """What was proved is not proved again; both proofs verify, each in its place."""
    request, randomness, sectors = asked(5, 9)
    job = request.request_id
    address = f"unix://{place}/s"
    with Curio(address) as curio, Client(address) as client, ThreadPoolExecutor(1) as threads:
        with served(place) as first:
            waiting = threads.submit(curio.prove, request)
            until(lambda: [number for number, _ in begun(place)] == [0, 1])
            until(lambda: states(client, job) == ["done", "proving"])
            until(lambda: in_journal(place) == [0])
            assert client.poll(job, 0.05) is None
            worker = begun(place)[1][1]
            assert worker in {each.pid for each in first.processes()[1:]}
            first.process.kill()
            with pytest.raises(grpc.RpcError) as lost:
                waiting.result(SOON)
            assert lost.value.code() is grpc.StatusCode.UNAVAILABLE
            until(lambda: is_gone(worker))
        (place / "go").touch()
        with served(place):
            result = curio.prove(request)  # as a task that is tried again
            assert (result.status, result.error_message) == (AwaitProofResponse.COMPLETED, "")
            assert states(client, job) == ["done", "done"]
    assert [number for number, _ in begun(place)] == [0, 1, 1]
    assert [number for number, _ in begun(place, "staged")] == [
        1
    ]  # not by the second daemon: its slot was free
    assert len({process for _, process in begun(place)}) == 2
    (path,) = own_files("window-2KiB").glob("*.vk")
    verifier = Verifier(read_vk(path), insecure_key=True, threads=2)
    parts = result.proof[:192], result.proof[192:]
    for chosen, own, other in zip((sectors, sectors[1:]), parts, parts[::-1], strict=True):
        named = tuple(Sector(each.number, each.comm_r) for each in chosen)
        statement = PostStatement(WINDOW, randomness, named)
        assert check_proof(verifier, statement, own) == ""
        assert check_proof(verifier, statement, other) == EQUATION


def test_a_worker_that_is_killed_in_a_partition(place: Path) -> None:
    """Whoever waits gets a proof, of the partition that was proved and of one that another process proves."""
    request, randomness, sectors = asked(5, 9)
    address = f"unix://{place}/s"
    with (
        served(place) as daemon,
        Curio(address) as curio,
        ThreadPoolExecutor(1) as threads,
    ):
        waiting = threads.submit(curio.prove, request)
        until(lambda: [number for number, _ in begun(place)] == [0, 1])
        worker = begun(place)[1][1]
        assert worker in {each.pid for each in daemon.processes()[1:]}
        psutil.Process(worker).kill()
        until(lambda: is_gone(worker))
        (place / "go").touch()
        result = waiting.result(SOON)
        assert (result.status, result.error_message) == (AwaitProofResponse.COMPLETED, "")
        assert curio.completed() == 1
        assert daemon.process.poll() is None
        assert worker not in {each.pid for each in daemon.processes()}
    assert [number for number, _ in begun(place)] == [0, 1, 1]
    assert [process == worker for _, process in begun(place)] == [True, True, False]
    (path,) = own_files("window-2KiB").glob("*.vk")
    named = tuple(Sector(each.number, each.comm_r) for each in sectors)
    statement = PostStatement(WINDOW, randomness, named)
    verifier = Verifier(read_vk(path), insecure_key=True, threads=2)
    assert check_proof(verifier, statement, result.proof[:192]) == ""


def test_a_retry_while_it_runs_is_the_same_job(place: Path) -> None:
    """Curio retries with the same id: one proof is made, and all get its bytes."""
    request, _, _ = asked(5, 9)
    address = f"unix://{place}/s"
    with (
        served(place) as daemon,
        Client(address) as client,
        Curio(address) as curio,
        ThreadPoolExecutor(3) as threads,
    ):
        client.submit(request)
        until(lambda: [number for number, _ in begun(place)] == [0, 1])
        waiting = [threads.submit(curio.prove, request) for _ in range(3)]
        until(lambda: sum("attached to" in line for line in list(daemon.log)) == 3)
        assert client.poll(request.request_id, 0.05) is None
        (place / "go").touch()
        found = [each.result(SOON) for each in waiting]
        assert {result.status for result in found} == {AwaitProofResponse.COMPLETED}
        assert len({result.proof for result in found}) == 1
        assert curio.completed() == 1
    assert [number for number, _ in begun(place)] == [0, 1]


def test_a_job_that_is_cancelled_between_partitions(place: Path) -> None:
    """Its second partition's proof is thrown away; the next job waits for the slot, staged, and has it then."""
    request, _, _ = asked(5)
    address = f"unix://{place}/s"
    with (
        served(place),
        Client(address) as client,
        Curio(address) as curio,
        ThreadPoolExecutor(1) as threads,
    ):
        client.submit(request)
        until(lambda: states(client, request.request_id) == ["done", "proving"])
        assert client.cancel(request.request_id)
        with pytest.raises(Cancelled):
            client.wait(request.request_id, SOON)
        after, _, _ = asked(9)
        waiting = threads.submit(curio.prove, after)
        until(lambda: [number for number, _ in begun(place, "staged")] == [1, 0])
        (place / "go").touch()
        result = waiting.result(SOON)
        assert (result.status, result.error_message) == (AwaitProofResponse.COMPLETED, "")
        assert curio.completed() == 1
    assert [number for number, _ in begun(place)] == [0, 1, 0, 1]
    assert [number for number, _ in begun(place, "staged")] == [1, 0, 1]
    assert len({process for _, process in begun(place)}) == 1


def test_a_wrong_vanilla_proof_in_the_last_place(place: Path) -> None:
    """An answer, not an error of the call; the reason names it, and no partition is begun."""
    request, _, _ = asked(5, 9)
    value = np.frombuffer(bytearray(request.vanilla_proofs[1]), dtype=post_layout(WINDOW).dtype)
    ((segment, _, _),) = octree_segments(WINDOW.shape)
    inner = value["vanilla_proof"]["sectors"]["items"][:, 0]["inclusion_proofs"]["items"]
    inner["data"]["content"][segment]["path"]["items"]["hashes"]["items"][0, 3, 1, 2, 0] ^= 1
    request.vanilla_proofs[1] = value.tobytes()
    with served(place), Curio(f"unix://{place}/s") as curio:
        result = curio.prove(request)
    assert (result.status, result.error_code) == (AwaitProofResponse.FAILED, "unsatisfied")
    assert result.error_message.startswith(
        "vanilla_proofs[1]: sector 1 (number 9): challenge 3 (node "
    )
    assert begun(place) == []
