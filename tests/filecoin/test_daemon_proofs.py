"""Filecoin through ``cuzk serve``, asked as Curio asks: 2 KiB PoSts under keys made here, verified from public data."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import grpc
import numpy as np
import psutil
import pytest
from curio import Curio, porep, window, winning
from made_posts import RANDOMNESS, MadeSector, made_sector
from own_files import circuit, own_files, params_file

import cuzk.cli.app as app
from cuzk.errors import FormatError, UnsatisfiedError
from cuzk.filecoin.key_sizes import section_bytes
from cuzk.filecoin.openings import octree_segments
from cuzk.filecoin.parameters import parameters_named
from cuzk.filecoin.registered import SEAL, RegisteredProof, registered
from cuzk.filecoin.statement import PostStatement, Sector, Statement
from cuzk.filecoin.statement_json import statement_json
from cuzk.filecoin.task import post_task
from cuzk.filecoin.vanilla import post_layout, read_post
from cuzk.filecoin.verify import verify
from cuzk.formats.bellman import read_vk
from cuzk.server.proving_pb2 import AwaitProofResponse, SubmitProofRequest
from cuzk.verifier import Verifier
from daemon_process import Served, serve
from until import PATIENCE

WINDOW = registered("post", "StackedDrgWindow2KiBV1_1")  # as Go calls it
WINNING = registered("post", "StackedDrgWinning2KiBV1")
ALIASES = {
    "porep-32g": "porep-32GiB",
    "porep-64g": "porep-64GiB",
    "wpost-32g": "window-32GiB",
    "winning-32g": "winning-32GiB",
    "snap-32g": "update-32GiB",
    "snap-64g": "update-64GiB",
}
DONE = AwaitProofResponse.COMPLETED
FAILED = AwaitProofResponse.FAILED


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """A folder whose name is short enough for a socket's."""
    with TemporaryDirectory(prefix="cuzk-") as made:
        yield Path(made)


@pytest.fixture(scope="module")
def settings(place: Path) -> Path:
    """Two circuits with keys, and production's without."""
    (place / "parameters").mkdir()
    tables = [
        f'[daemon]\nstate = "{place}/state"\n[devices]\nuse = ["cpu"]\nthreads = 2',
        f'[filecoin]\nparameters = "{place}/parameters"',
    ]
    for name in ("window-2KiB", "winning-2KiB"):
        key = f'id = "{name}"\nkey = "{params_file(name)}"\ninsecure_key = true'
        tables.append(f'[[circuit]]\nkind = "filecoin"\n{key}')
    tables += [f'[[circuit]]\nkind = "filecoin"\nid = "{name}"' for name in ALIASES.values()]
    path = place / "cuzk.toml"
    path.write_text("\n".join(tables) + "\n")
    return path


@pytest.fixture(scope="module")
def daemon(place: Path, settings: Path) -> Iterator[Served]:
    with serve("--config", settings, "--listen", f"unix://{place}/s") as served:
        assert served.address == f"unix://{place}/s"
        yield served


@pytest.fixture(scope="module")
def client(daemon: Served) -> Iterator[Curio]:
    with Curio(daemon.address) as made:
        yield made


def sector(proof: RegisteredProof, number: int, randomness: bytes = RANDOMNESS) -> MadeSector:
    return made_sector(proof, number, randomness=randomness)


def stated(
    proof: RegisteredProof, *sectors: MadeSector, randomness: bytes = RANDOMNESS
) -> PostStatement:
    found = tuple(Sector(each.number, each.comm_r) for each in sectors)
    return PostStatement(proof, randomness, found)


def valid(statement: Statement, data: bytes) -> bool:
    (path,) = own_files(statement.proof.circuit).glob("*.vk")
    return verify(Verifier(read_vk(path), insecure_key=True), statement, data)


def fresh() -> bytes:
    """Randomness, and with it an id, that no other test has."""
    return os.urandom(31) + b"\0"


def asked(randomness: bytes, *sectors: MadeSector) -> SubmitProofRequest:
    return window(WINDOW, [each.blob for each in sectors], randomness)


def test_window_post(client: Curio) -> None:
    """Two sectors, and one that is repeated to fill the partition: 192 bytes."""
    two = [made_sector(WINDOW, number, place) for place, number in enumerate((5, 9))]
    request = asked(RANDOMNESS, *two)
    assert request.request_id == "wdpost-1000-0-[7 7 7 7 7 7 7 7]"
    assert (request.registered_proof, request.priority, request.sector_number) == (10, 3, 0)
    result = client.prove(request)
    assert (result.status, result.error_message) == (DONE, "")
    assert len(result.proof) == 192
    assert result.total_ms >= result.gpu_compute_ms > 0
    assert valid(stated(WINDOW, *two), result.proof)
    assert not valid(stated(WINDOW, *two[::-1]), result.proof)
    randomness = fresh()
    alone = sector(WINDOW, 5, randomness)
    result = client.prove(asked(randomness, alone))
    assert valid(stated(WINDOW, alone, randomness=randomness), result.proof)


def test_winning_post_over_tcp(settings: Path, place: Path) -> None:
    """Its registered proof is 0, which is not on the wire."""
    made = sector(WINNING, 5)
    request = winning(WINNING, made.blob, RANDOMNESS)
    assert request.request_id == "winpost-1000-0707070707070707"
    assert (request.registered_proof, request.priority) == (0, 4)
    with (
        serve("--config", settings, "--state", place / "state2") as served,
        Curio(served.address) as client,
    ):
        assert served.address.startswith("127.0.0.1:")
        result = client.prove(request)
    assert (result.status, result.error_message) == (DONE, "")
    assert valid(stated(WINNING, made), result.proof)
    assert not valid(stated(WINNING, made, randomness=bytes(32)), result.proof)


def test_a_retry_is_the_same_job(client: Curio) -> None:
    """At once, and when it is done: one proof is made, and all get its bytes (while it runs: test_daemon_two_partitions)."""
    randomness = fresh()
    made = sector(WINDOW, 5, randomness)
    before = client.completed()
    with ThreadPoolExecutor(3) as threads:
        found = list(threads.map(client.prove, [asked(randomness, made)] * 3))
    found.append(client.prove(asked(randomness, made)))
    assert [result.status for result in found] == [DONE] * 4
    assert len({result.proof for result in found}) == 1
    assert valid(stated(WINDOW, made, randomness=randomness), found[0].proof)
    assert client.completed() == before + 1


def refused(client: Curio, request: SubmitProofRequest) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.RpcError) as caught:
        client.prove(request)
    error: Any = caught.value
    assert "\n" not in error.details()
    return error.code(), error.details()


def test_another_payload_under_the_same_id(client: Curio) -> None:
    randomness = fresh()
    made = sector(WINDOW, 5, randomness)
    assert client.prove(asked(randomness, made)).status == DONE
    other = asked(randomness, sector(WINDOW, 6, randomness))
    code, text = refused(client, other)
    assert code is grpc.StatusCode.ALREADY_EXISTS
    assert other.request_id in text


def test_a_tampered_path_is_a_failed_job(client: Curio) -> None:
    """gRPC OK and the item's name, in the words of the library; the same id may be used again, mended."""
    randomness = fresh()
    two = [made_sector(WINDOW, n, i, randomness) for i, n in enumerate((5, 9))]
    layout = post_layout(WINDOW)
    segment, _, _ = octree_segments(WINDOW.shape)[0]
    value = np.frombuffer(bytearray(two[1].blob), dtype=layout.dtype)
    inner = value["vanilla_proof"]["sectors"]["items"][:, 0]["inclusion_proofs"]["items"]
    paths = inner["data"]["content"][segment]["path"]["items"]["hashes"]["items"]
    paths[0, 3, 1, 2, 0] ^= 1
    wrong = [two[0].blob, value.tobytes()]
    statement = stated(WINDOW, *two, randomness=randomness)
    with pytest.raises(UnsatisfiedError) as here:
        post_task(read_post(wrong, WINDOW), statement)
    result = client.prove(window(WINDOW, wrong, randomness))
    assert (result.status, result.proof) == (FAILED, b"")
    assert result.error_message == f"vanilla_proofs[1]: {here.value}"
    assert str(here.value).startswith("sector 1 (number 9): challenge 3 (node ")
    assert result.error_code == "unsatisfied"
    result = client.prove(asked(randomness, *two))
    assert (result.status, result.error_message) == (DONE, "")
    assert valid(statement, result.proof)


def test_of_other_randomness(client: Curio) -> None:
    """The challenged nodes are others."""
    result = client.prove(asked(fresh(), sector(WINDOW, 5)))
    assert result.status == FAILED
    place = "vanilla_proofs[0]: sector 0 (number 5): challenge 0: challenged node: expected "
    assert result.error_message.startswith(place)


BAD: dict[str, Callable[[bytes], bytes]] = {
    "cut": lambda blob: blob[:-1],
    "longer": lambda blob: blob + b"\0",
    "of another size": lambda _: sector(WINNING, 5).blob,
    "text": lambda _: b"[]",
}


@pytest.mark.parametrize("case", BAD)
def test_malformed_is_refused_as_on_the_command_line(
    client: Curio, daemon: Served, case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """But for the file's name; nobody is hurt (cases: D10)."""
    before = [process.pid for process in daemon.processes()]
    made, randomness = sector(WINDOW, 5), fresh()
    bad = BAD[case](made.blob)
    (tmp_path / "5.vproof").write_bytes(bad)
    (tmp_path / "statement.json").write_bytes(statement_json(stated(WINDOW, made)))
    given = ["filecoin", "prove", "5.vproof", "--statement", "statement.json"]
    given += ["--key", str(params_file("window-2KiB")), "--insecure-key", "-o", "proof.bin"]
    given[2], given[4], given[-1] = (
        str(tmp_path / name) for name in (given[2], given[4], given[-1])
    )
    assert app.run(given) == 2
    said = capsys.readouterr().err.splitlines()[-1].removeprefix("cuzk: ")
    code, text = refused(client, window(WINDOW, [bad], randomness))
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert text == said.replace("5.vproof", "vanilla_proofs[0]")
    assert [process.pid for process in daemon.processes()] == before


def test_non_interactive_porep_is_refused(client: Curio) -> None:
    proof = SEAL[15]
    code, text = refused(client, porep(proof, b"{}", 7))
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert text == (
        "registered_proof: expected interactive or synthetic challenges, found 15 "
        "(StackedDrg2KiBV1_2_Feat_NonInteractivePoRep): the chain takes the aggregate of such proofs, which is not "
        "made here"
    )


def test_keys_come_and_go(client: Curio) -> None:
    """By the circuit's name; the freed bytes are those of its points, and the places of templates."""
    client.evict("window-2KiB")
    assert not client.preload("window-2KiB").already_loaded
    again = client.preload("window-2KiB")
    assert (again.already_loaded, again.load_time_ms) == (True, 0)
    evicted = client.evict("window-2KiB")
    assert evicted.was_loaded
    points = sum(section_bytes(circuit("window-2KiB")).values())
    assert points <= evicted.freed_bytes < 1.01 * points
    assert not client.evict("window-2KiB").was_loaded


@pytest.mark.parametrize("alias", ALIASES)
def test_production_keys_that_are_missing(client: Curio, place: Path, alias: str) -> None:
    """By Curio's names; what is said names the file and how to get it (cases: D20)."""
    files = parameters_named(ALIASES[alias])
    with pytest.raises(FormatError) as here:
        files.find(place / "parameters", "params")
    with pytest.raises(grpc.RpcError) as caught:
        client.preload(alias)
    error: Any = caught.value
    assert error.code() is grpc.StatusCode.FAILED_PRECONDITION
    assert str(here.value) in error.details()
    assert f"{files.stem}.params" in error.details()
    assert f"`curio fetch-params {files.shape.name}`" in error.details()
    assert not client.evict(alias).was_loaded


def test_a_worker_that_dies_is_replaced(client: Curio, daemon: Served) -> None:
    """Whoever waits gets a proof (kill -9). They stand still before they are asked, so that none of them has made it."""
    randomness = fresh()
    made = sector(WINDOW, 5, randomness)
    own, *workers = daemon.processes()
    before = [process.pid for process in workers]
    assert before
    with ThreadPoolExecutor(1) as threads:
        with daemon.halted():
            waiting = threads.submit(client.prove, asked(randomness, made))
            for process in workers:
                process.kill()
        result = waiting.result(PATIENCE)
    assert (result.status, result.error_message) == (DONE, "")
    assert valid(stated(WINDOW, made, randomness=randomness), result.proof)
    assert own.status() != psutil.STATUS_ZOMBIE
    _, *others = daemon.processes()
    assert len(others) == len(before)
    assert not {process.pid for process in others} & set(before)
