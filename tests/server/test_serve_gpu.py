"""A daemon on real GPUs: proofs, keys that come and go, a worker that dies, several devices."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import psutil
import pytest

import cuzk as library
from circuits import chain
from cuzk.backends.cuda.device import device_count, open_card
from cuzk.curves import CURVES
from cuzk.errors import DeviceUnavailable
from cuzk.formats.iden3.wtns import write_wtns
from cuzk.formats.iden3.zkey_writer import write_zkey
from cuzk.server.client import Client, ProofResult
from cuzk.setup import Secrets, insecure_setup
from daemon_process import Served, serve
from until import until

pytestmark = pytest.mark.gpu
LOG_ROWS = 16
GIB = 1 << 30


def gpus() -> int:
    try:
        return int(device_count())
    except DeviceUnavailable as error:
        if os.environ.get("CUZK_REQUIRE_GPU"):
            raise
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A circuit of 2^16 rows on each curve; its witness beside it."""
    gpus()
    folder = tmp_path_factory.mktemp("keys")
    for name, curve in (("bn", CURVES["bn254"]), ("bls", CURVES["bls12_381"])):
        circuit = chain(curve, (1 << LOG_ROWS) - 8)
        key = insecure_setup(circuit.matrices(), Secrets.drawn(curve), threads=os.cpu_count() or 1)
        write_zkey(folder / f"{name}.zkey", key)
        write_wtns(folder / f"{name}.wtns", circuit.witness())
    return {name: folder / f"{name}.zkey" for name in ("bn", "bls")}


@pytest.fixture
def served(keys: dict[str, Path], tmp_path: Path) -> Iterator[Served]:
    state = tmp_path / "state"
    given = [word for name, key in keys.items() for word in ("--circuit", f"{name}={key}")]
    devices = [word for n in range(gpus()) for word in ("--device", f"cuda:{n}")]
    with serve("--state", state, *devices, *given) as daemon:
        assert daemon.address
        yield daemon


@pytest.fixture
def client(served: Served) -> Iterator[Client]:
    with Client(served.address) as made:
        yield made


def prove(client: Client, key: Path, id: str = "") -> ProofResult:
    return client.prove_circuit(key.stem, key.with_suffix(".wtns"), id=id or None)


def expect_valid(key: Path, result: ProofResult) -> None:
    vk = library.load_verifying_key(key)
    public = library.load_public(result.public, vk.curve)
    assert library.verify(vk, public, library.load_proof(result.proof, vk.curve))


def worker(status: dict[str, Any], name: str = "cuda:0") -> dict[str, Any]:
    (found,) = [each for each in status["workers"] if each["name"] == name]
    return dict(found)


def test_proofs_of_two_circuits_at_once(
    served: Served, client: Client, keys: dict[str, Path]
) -> None:
    asked = [keys["bn"], keys["bls"]] * 8
    with ThreadPoolExecutor(16) as threads:
        for key, result in zip(asked, threads.map(lambda key: prove(client, key), asked), strict=True):  # fmt: skip
            expect_valid(key, result)
    status = client.status()
    workers = {part["worker"] for job in status["jobs"] for part in job["partitions"]}
    assert workers == {f"cuda:{n}" for n in range(gpus())}  # every device had work
    assert {key["worker"] for key in status["keys"]} <= {f"cuda:{n}" for n in range(gpus())}
    with urlopen(f"{served.page.rstrip('/')}/status") as page:
        lanes = {(lane["worker"], lane["track"]) for lane in json.load(page)["lanes"]}
    assert any(track.startswith("cuda:") for _, track in lanes), lanes
    memories = {memory["name"]: memory for memory in status["memories"]}
    for n in range(gpus()):
        memory, device = memories[f"cuda:{n}"], worker(status, f"cuda:{n}")
        used = device["device_total"] - device["device_free"]
        print(f"cuda:{n}: reserved {memory['reserved']}, used {used}", json.dumps(memory["owners"]))
        assert memory["reserved"] <= memory["limit"]


def test_25_a_device_by_its_uuid(keys: dict[str, Path], tmp_path: Path) -> None:
    """Fault 25. It is the worker of that number, with that memory's limit, once however often it is named."""
    gpus()
    card = open_card(gpus() - 1).facts
    given = (
        "--circuit",
        f"bn={keys['bn']}",
        "--device",
        f"cuda:{card.uuid}",
        "--device",
        card.name,
    )
    with serve("--state", tmp_path / "state", *given) as daemon, Client(daemon.address) as client:
        expect_valid(keys["bn"], prove(client, keys["bn"]))
        status = client.status()
        assert [each["name"] for each in status["workers"]] == [card.name]
        assert worker(status, card.name)["device_total"] == card.total_bytes
        (memory,) = [each for each in status["memories"] if each["name"] == card.name]
        assert memory["limit"] == card.total_bytes
        assert any(owner.startswith("key bn ") for owner in memory["owners"])


def test_an_evicted_key_leaves_no_device_memory(client: Client, keys: dict[str, Path]) -> None:
    """Cases: G17. What stays is the context, the kernels, and what the pool keeps for next time."""
    found = []
    for _ in range(4):
        for key in keys.values():
            expect_valid(key, prove(client, key))
        held = _free(client)
        for key in keys.values():
            was_loaded, freed = client.evict(key.stem)
            assert was_loaded
            assert freed > 0
        found.append(_free(client))
        print("free with both keys, and without", held, found[-1])
    least = found[0] - (16 << 20)
    until(lambda: found[-1] >= least or _free(client) >= least)


def _free(client: Client) -> int:
    """Free bytes of all devices, once each worker has said it again."""
    time.sleep(1.5)
    return sum(int(each["device_free"]) for each in client.status()["workers"])


def test_a_worker_that_dies_in_a_proof(client: Client, keys: dict[str, Path]) -> None:
    with ThreadPoolExecutor(8) as threads:
        proofs = [threads.submit(prove, client, keys["bls"], f"job-{n}") for n in range(8)]
        stopped_in_a_proof(client).kill()
        for each in proofs:
            expect_valid(keys["bls"], each.result(timeout=120))
    until(lambda: sum(each["restarts"] for each in client.status()["workers"]) == 1)


def stopped_in_a_proof(client: Client) -> psutil.Process:
    """A worker's process that is in one and does nothing more."""
    found: list[psutil.Process] = []

    def stop() -> bool:
        busy = [each for each in client.status()["workers"] if each["partitions"]]
        if not busy:
            return False
        process = psutil.Process(busy[0]["process"])
        process.suspend()
        until(lambda: process.status() == psutil.STATUS_STOPPED)
        if worker(client.status(), busy[0]["name"])["partitions"]:
            found.append(process)
        else:
            process.resume()
        return bool(found)

    until(stop)
    return found[0]


def test_two_keys_take_turns_where_memory_is_for_one(keys: dict[str, Path], tmp_path: Path) -> None:
    """Cases: M5, on a device."""
    gpus()
    config = tmp_path / "cuzk.toml"
    circuits = "".join(
        f'[[circuit]]\nid = "{name}"\nkind = "circom"\nkey = "{key}"\n' for name, key in keys.items()
    )  # fmt: skip
    with serve("--state", tmp_path / "probe", "--config", _config(config, circuits, 8 * GIB)) as daemon, \
            Client(daemon.address) as client:  # fmt: skip
        needs = {}
        for name, key in keys.items():
            prove(client, key)
            (memory,) = [m for m in client.status()["memories"] if m["name"] == "cuda:0"]
            (needs[name],) = [n for owner, n in memory["owners"].items() if owner.startswith(f"key {name} ")]  # fmt: skip
    tight = GIB + max(needs.values())
    print("needs", needs, "limit", tight)
    with serve("--state", tmp_path / "tight", "--config", _config(config, circuits, tight)) as daemon, \
            Client(daemon.address) as client:  # fmt: skip
        for _ in range(2):
            for key in keys.values():
                expect_valid(key, prove(client, key))
                (memory,) = [m for m in client.status()["memories"] if m["name"] == "cuda:0"]
                assert memory["reserved"] <= tight


def _config(path: Path, circuits: str, device: int) -> Path:
    path.write_text(f'[memory]\ndevice = {device}\n[devices]\nuse = ["cuda:0"]\n{circuits}')
    return path
