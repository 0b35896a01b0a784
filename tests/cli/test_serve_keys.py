"""Keys of a daemon in a process of its own that go, change or are cut under it.

Numbers are those of docs/cases.md.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from daemon_answers import expect_valid, job_of, owners, owners_and_keys
from files import sections, slow_files

from cuzk.errors import CuzkError
from cuzk.server.client import Client
from daemon_process import Served, serve
from until import until

MIB = 1 << 20
SLOW = "slow"


@pytest.fixture(scope="module")
def changing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key that tests damage, and put right again."""
    return Path(shutil.copy(slow_files()[0], tmp_path_factory.mktemp("changing") / "c.zkey"))


@pytest.fixture(scope="module")
def daemon(changing: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    given = ["--circuit", f"{SLOW}={slow_files()[0]}", "--circuit", f"changing={changing}"]
    state = tmp_path_factory.mktemp("state")
    state.chmod(0o700)
    with serve("--state", state, "--device", "cpu", "--threads", "1", *given) as served:
        assert served.address
        yield served


@pytest.fixture
def client(daemon: Served) -> Iterator[Client]:
    with Client(daemon.address, timeout=30) as made:
        yield made


def test_g17_an_evicted_key_gives_its_memory_back(daemon: Served, client: Client) -> None:
    """To base, however often it comes and goes; while it is loaded its file is mapped."""
    (worker,) = [psutil.Process(each["process"]) for each in client.status()["workers"]]
    key, sizes = slow_files()[0], []

    def mapped() -> bool:
        return any(each.path == str(key) for each in worker.memory_maps())

    for number in range(12):
        client.prove_circuit(SLOW, slow_files()[1])
        assert mapped()
        until(lambda: not owners(client))
        was_loaded, freed = client.evict(SLOW)
        assert was_loaded
        assert freed >= key.stat().st_size
        assert not mapped()
        assert f"key {SLOW} on cpu" not in owners_and_keys(client)
        if number > 1:
            sizes.append(worker.memory_info().rss)
    assert min(sizes[-3:]) - sizes[0] < 8 * MIB, sizes
    assert daemon.process.poll() is None


def overwrite(path: Path, at: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)


def test_23_a_key_that_changes_makes_no_wrong_proof(client: Client, changing: Path) -> None:
    """Loaded and mapped, written over in place, in the middle of its points: withheld, and the reason told."""
    whole = changing.read_bytes()
    witness = slow_files()[1]
    expect_valid(changing, client.prove_circuit("changing", witness))
    offset, length = sections(whole)[8]  # points of C
    overwrite(changing, offset, whole[offset + 64 : offset + 128] * (length // 64))
    job = client.submit_circuit("changing", witness, id="damaged").job
    with pytest.raises(CuzkError) as refused:
        client.wait(job)
    assert refused.value.code in ("invalid-proof", "bad-format", "not-ready")
    assert job_of(client, "damaged")["state"] == "failed"
    overwrite(changing, 0, whole)
    client.evict("changing")
    expect_valid(changing, client.prove_circuit("changing", witness, id="damaged"))


def test_4_a_key_that_is_cut_while_it_is_mapped_costs_its_own_jobs_only(
    daemon: Served, client: Client, changing: Path
) -> None:
    """What reads past the file's end kills a process: not the daemon's, and no other job fails."""
    whole = changing.read_bytes()
    expect_valid(changing, client.prove_circuit("changing", slow_files()[1]))
    with changing.open("r+b") as file:
        file.truncate(4096)
    with pytest.raises(CuzkError):
        client.prove_circuit("changing", slow_files()[1], id="cut")
    expect_valid(slow_files()[0], client.prove_circuit(SLOW, slow_files()[1]))
    assert daemon.process.poll() is None
    changing.write_bytes(whole)
    client.evict("changing")
    expect_valid(changing, client.prove_circuit("changing", slow_files()[1], id="cut"))
