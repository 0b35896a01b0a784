"""``cuzk serve`` with requests: real processes, both curves, every proof verified."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_address
from pathlib import Path
from urllib.request import urlopen

import pytest
from files import files, folder, wtns_bytes

import cuzk as library
from circuits import cubic
from command import cuzk, error_line
from cuzk.config import Settings
from cuzk.curves import CURVES
from cuzk.errors import CircuitError, CuzkError, FormatError, ProofError
from cuzk.formats.iden3.wtns import write_wtns
from cuzk.formats.iden3.zkey_writer import write_zkey
from cuzk.prover.session import Prover
from cuzk.server.client import Client
from cuzk.setup import make_powers_of_tau, setup
from daemon_process import Served, serve

KEYS = {"bn": "bn254", "bls": "bls12_381", "own": "bn254"}  # circuit -> curve


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Three circuits' keys; "own" and "bn" are of one circuit and differ in their secrets."""
    other = tmp_path_factory.mktemp("keys") / "own.zkey"
    curve = CURVES["bn254"]
    write_zkey(other, setup(cubic(curve).matrices(), make_powers_of_tau(curve, 3)))
    return {"bn": files("bn254").zkey, "bls": files("bls12_381").zkey, "own": other}


@pytest.fixture(scope="module")
def daemon(keys: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    given = [word for name, key in keys.items() for word in ("--circuit", f"{name}={key}")]
    missing = ("--circuit", f"gone={folder() / 'none.zkey'}")
    state = tmp_path_factory.mktemp("state")
    state.chmod(0o700)
    with serve("--state", state, "--device", "cpu", *given, *missing) as served:
        assert served.address
        yield served


@pytest.fixture
def client(daemon: Served) -> Iterator[Client]:
    with Client(daemon.address, timeout=30) as made:
        yield made


def valid(key: Path, curve: str, public: bytes, proof: bytes) -> bool:
    vk = library.load_verifying_key(key)
    signals = library.load_public(public, CURVES[curve])
    return library.verify(vk, signals, library.load_proof(proof, CURVES[curve]))


def witness_of(curve: str, x: int) -> bytes:
    return wtns_bytes(curve, cubic(CURVES[curve], x).witness().ints())


@pytest.mark.parametrize("circuit", ["bn", "bls"])
def test_submit_await_verify(
    daemon: Served, keys: dict[str, Path], tmp_path: Path, circuit: str
) -> None:
    """What README shows, by the commands alone."""
    here = {"CUZK_ADDRESS": daemon.address}
    taken = cuzk("submit", circuit, files(KEYS[circuit]).wtns, variables=here, cwd=tmp_path)
    assert (taken.status, taken.err) == (0, "")
    job = taken.out.strip()
    done = cuzk("await", job, variables=here, cwd=tmp_path)
    assert (done.status, done.out) == (0, "")
    assert json.loads((tmp_path / "public.json").read_bytes()) == ["35"]
    verified = cuzk("verify", keys[circuit], "public.json", "proof.json", cwd=tmp_path)
    assert (verified.status, verified.out) == (0, "valid\n")
    assert cuzk("status", job, variables=here).out.startswith(f"{job}: done\n")


def test_32_at_a_time_get_each_its_own_proof(client: Client, keys: dict[str, Path]) -> None:
    """Over three circuits (cases: D1)."""
    asked = [(list(KEYS)[n % 3], 2 + n) for n in range(32)]
    with ThreadPoolExecutor(32) as threads:
        results = list(
            threads.map(
                lambda one: client.prove_circuit(one[0], witness_of(KEYS[one[0]], one[1])), asked
            )
        )
    for (circuit, x), result in zip(asked, results, strict=True):
        assert json.loads(result.public) == [str(x**3 + x + 5)]
        assert valid(keys[circuit], KEYS[circuit], result.public, result.proof)
        others = [name for name in KEYS if KEYS[name] == KEYS[circuit] and name != circuit]
        for other in others:
            assert not valid(keys[other], KEYS[circuit], result.public, result.proof)


def test_a_missing_key_is_not_ready_and_nothing_else(daemon: Served, client: Client) -> None:
    """Said at the start, in the status and to who asks (cases: D20)."""
    assert daemon.said(r"circuit gone: NOT READY: .*none\.zkey")
    refused = cuzk("submit", "gone", files("bn254").wtns, "--address", daemon.address)
    assert "none.zkey" in error_line(refused, status=3)
    tiers = {key["circuit"]: (key["tier"], key["fault"]) for key in client.status()["keys"]}
    assert tiers["gone"][0] == "not ready"
    assert "none.zkey" in tiers["gone"][1]
    assert [fault for name, (_, fault) in tiers.items() if name != "gone"] == [""] * 3
    assert client.prove_circuit("bn", files("bn254").wtns).proof


def test_a_key_that_comes_later_is_taken(client: Client) -> None:
    later = folder() / "none.zkey"
    shutil.copy(files("bn254").zkey, later)
    try:
        result = client.prove_circuit("gone", files("bn254").wtns)
        assert valid(later, "bn254", result.public, result.proof)
    finally:
        client.evict("gone")
        later.unlink()


BAD: dict[str, Callable[[bytes], bytes]] = {
    "three bytes": lambda data: data[:3],
    "cut": lambda data: data[:-1],
    "another magic": lambda data: b"zkey" + data[4:],
    "version 3": lambda data: data[:4] + b"\3" + data[5:],
    "not reduced": lambda data: data[:-32] + b"\xff" * 32,
    "another curve": lambda _: files("bls12_381").wtns.read_bytes(),
    "another length": lambda _: wtns_bytes("bn254", [1] * 5),
    "no ONE": lambda _: wtns_bytes("bn254", [2, 35, 3, 9]),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_witnesses_are_refused_with_the_text_of_the_command(
    daemon: Served, client: Client, case: str, tmp_path: Path
) -> None:
    """And hurt nobody (cases: D10)."""
    before = [process.pid for process in daemon.processes()]
    bad = BAD[case](files("bn254").wtns.read_bytes())
    (tmp_path / "witness").write_bytes(bad)
    with Prover(files("bn254").zkey) as prover, pytest.raises(CuzkError) as here:
        prover.prove(tmp_path / "witness")
    with pytest.raises((FormatError, CircuitError)) as there:
        client.prove_circuit("bn", bad)
    assert str(there.value) == str(here.value)
    assert type(there.value) is type(here.value)
    assert [process.pid for process in daemon.processes()] == before


def test_no_witness_at_all(client: Client) -> None:
    with pytest.raises(FormatError, match=r"^witness: expected .*, found none$"):
        client.prove_circuit("bn", b"")


def test_an_unsatisfied_witness_is_a_job_that_failed(daemon: Served, client: Client) -> None:
    job = client.submit_circuit("bn", files("bn254").false_witness, id="false").job
    with pytest.raises(ProofError) as raised:
        client.wait(job)
    waited = cuzk("await", "false", "--address", daemon.address)
    assert error_line(waited, status=1) == str(raised.value)
    assert str(raised.value) in cuzk("status", "--address", daemon.address).out


def test_a_repeat_is_the_same_job_and_another_one_is_refused(
    daemon: Served, client: Client, tmp_path: Path
) -> None:
    first = client.prove_circuit("bn", witness_of("bn254", 4), id="mine")
    assert client.prove_circuit("bn", witness_of("bn254", 4), id="mine").proof == first.proof
    other = tmp_path / "w.wtns"
    write_wtns(other, cubic(CURVES["bn254"], 5).witness())
    refused = cuzk("submit", "bn", other, "--id", "mine", "--address", daemon.address)
    assert "mine" in error_line(refused, status=2)


def test_only_this_machine_can_reach_it(daemon: Served) -> None:
    """Without a line that says otherwise (cases: D17): every listening socket, workers' too."""
    listening = [
        connection.laddr
        for process in daemon.processes()
        for connection in process.net_connections("inet")
        if connection.status == "LISTEN"
    ]
    assert len(listening) == 2
    assert all(ip_address(place.ip).is_loopback for place in listening)
    defaults = Settings().daemon
    assert (defaults.listen, defaults.status_listen) == ("127.0.0.1:9820", "127.0.0.1:9821")


def test_the_page_is_where_the_log_says(daemon: Served) -> None:
    with urlopen(daemon.page) as page:
        assert b"<title>" in page.read()
    with urlopen(f"{daemon.page}/status") as state:
        assert json.load(state)["process"] == daemon.process.pid


def test_preload_evict_metrics(daemon: Served) -> None:
    here = {"CUZK_ADDRESS": daemon.address}
    cuzk("evict", "own", variables=here)
    assert "loaded in" in cuzk("preload", "own", variables=here).out
    assert cuzk("preload", "own", variables=here).out == "own: was loaded already\n"
    assert cuzk("evict", "own", variables=here).out.startswith("own: unloaded, ")
    assert cuzk("evict", "own", variables=here).out == "own: was not loaded\n"
    assert error_line(cuzk("preload", "none", variables=here), status=3)
    assert "cuzk_" in cuzk("metrics", variables=here).out


def test_cancel(client: Client, daemon: Served) -> None:
    job = client.submit_circuit("bn", files("bn254").wtns).job
    client.wait(job)
    done = cuzk("cancel", job, "--address", daemon.address)
    assert (done.status, done.out) == (0, f"{job}: ended before: done\n")
    assert error_line(cuzk("cancel", "nobody's", "--address", daemon.address), status=2)


def test_the_daemons_process_does_not_prove(daemon: Served) -> None:
    """Its memory stays small, whatever is proved: another process maps keys and witnesses."""
    own, *workers = daemon.processes()
    assert len(workers) == 1
    assert own.memory_info().rss < 200 << 20
    assert not [m for m in own.memory_maps() if m.path.endswith(".zkey")]
