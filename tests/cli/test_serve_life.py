"""A daemon's life: how it starts, how it ends, what of its work is there afterwards."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.error import HTTPError
from urllib.request import urlopen

import psutil
import pytest
from files import files, slow_files

import cuzk as library
import cuzk.cli.app as app
from command import cuzk, error_line
from cuzk.curves import BN254
from cuzk.errors import NotReady, Unavailable
from cuzk.groth16 import VerifyingKey
from cuzk.server.client import Client
from daemon_process import Served, halted_at_work, serve
from until import PATIENCE


@pytest.fixture(scope="module")
def slow() -> tuple[Path, Path]:
    return slow_files()


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder whose name is short enough for a socket's."""
    with TemporaryDirectory(prefix="cuzk-") as made:
        yield Path(made)


def options(place: Path, slow: tuple[Path, Path]) -> list[str | Path]:
    """A daemon that comes back to the same socket and the same journal."""
    listen = ["--listen", f"unix://{place}/s", "--status", "off"]
    work = ["--circuit", f"slow={slow[0]}", "--device", "cpu", "--threads", "1"]
    return [*listen, "--state", place / "state", *work]


@contextmanager
def filled(served: Served, slow: tuple[Path, Path]) -> Iterator[list[str]]:
    """Jobs: the first is done, some are in work, others wait, as long as this lasts."""
    with Client(served.address) as client:

        def submit(job: str) -> None:
            client.submit_circuit("slow", slow[1], id=job)

        submit("first")
        client.wait("first", PATIENCE)
        with halted_at_work(served, client, submit) as jobs:
            yield ["first", *jobs]


def finished(address: str, slow: tuple[Path, Path], jobs: list[str]) -> dict[str, bytes]:
    """All their proofs, each of them valid."""
    vk: VerifyingKey = library.load_verifying_key(slow[0])
    proofs = {}
    with Client(address) as client:
        for job in jobs:
            result = client.wait(job, PATIENCE)
            proof = library.load_proof(result.proof, BN254)
            assert library.verify(vk, library.load_public(result.public, BN254), proof)
            proofs[job] = result.proof
    return proofs


def test_sigterm_drains_and_the_proofs_are_there_after_a_restart(
    place: Path, slow: tuple[Path, Path]
) -> None:
    """One running, others queued (cases: D12)."""
    with serve(*options(place, slow)) as first:
        with filled(first, slow) as jobs:
            first.signal(signal.SIGTERM)
            first.said("SIGTERM: draining")
            with Client(f"unix://{place}/s") as client, pytest.raises(Unavailable):
                client.submit_circuit("slow", slow[1], id="late")
        assert first.ended() == 0
        assert "nothing is unfinished" in first.log[-1]
    assert not (place / "s").exists()
    with serve(*options(place, slow)) as second:
        address = second.address
        with Client(address) as client:
            assert sum(client.status()["states"].values()) == 0
        finished(address, slow, jobs)


def test_a_second_sigterm_stops_at_once_and_the_rest_is_done_later(
    place: Path, slow: tuple[Path, Path]
) -> None:
    with serve(*options(place, slow)) as first:
        workers = first.processes()[1:]
        with filled(first, slow) as jobs:
            first.signal(signal.SIGTERM)
            first.said("SIGTERM: draining")
            first.signal(signal.SIGTERM)
            assert first.ended() == 0
        assert 0 < int(first.said(r"ended; (\d+) jobs are unfinished")[1]) < len(jobs)
        assert not any(worker.is_running() for worker in workers)
    assert not (place / "s").exists()
    with serve(*options(place, slow)) as second:
        assert second.said("recovered|unfinished")
        finished(second.address, slow, jobs)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_ctrl_c_and_a_terminal_that_closes_drain(
    place: Path, slow: tuple[Path, Path], number: signal.Signals
) -> None:
    """As a terminal sends them: to all processes of the group."""
    with serve(*options(place, slow)) as served:
        with filled(served, slow):
            os.killpg(served.process.pid, number)
            served.said("draining")
        assert served.ended() == 0
        assert "nothing is unfinished" in served.log[-1]
        assert not [line for line in served.log if "died" in line or "Traceback" in line]


def test_kill_9_and_a_start_at_once(place: Path, slow: tuple[Path, Path]) -> None:
    """No stale lock, the socket is taken over, every accepted job ends in a proof, none twice (cases: D4)."""
    with serve(*options(place, slow)) as first:
        workers = first.processes()[1:]
        with filled(first, slow) as jobs:
            with Client(first.address) as client:
                early = client.wait("first", PATIENCE).proof
            first.process.kill()
            first.process.wait()
        psutil.wait_procs(workers, timeout=PATIENCE)
        assert not any(worker.is_running() for worker in workers)
    assert (place / "s").exists()
    with serve(*options(place, slow)) as second:
        assert finished(second.address, slow, jobs)["first"] == early


def test_a_key_that_is_away_over_a_restart_is_waited_for(
    place: Path, slow: tuple[Path, Path]
) -> None:
    """As where its disk is mounted late: accepted work is finished (cases: D20)."""
    key, aside = place / "slow.zkey", place / "aside.zkey"
    shutil.copy(slow[0], key)
    with serve(*options(place, (key, slow[1]))) as first:
        workers = first.processes()[1:]
        with filled(first, slow) as jobs:
            first.process.kill()
            first.process.wait()
        psutil.wait_procs(workers, timeout=PATIENCE)
    key.rename(aside)
    with serve(*options(place, (key, slow[1]))) as second:
        assert second.said(r"'slow' is NOT READY, \d+ jobs wait for it: .*slow\.zkey")
        with Client(second.address) as client:
            assert client.poll(jobs[-1], 0.01) is None
            with pytest.raises(NotReady):
                client.submit_circuit("slow", slow[1], id="new")
        told = cuzk("status", jobs[-1], "--address", second.address).out
        assert told.startswith(f"{jobs[-1]}: queued\n")
        assert f"NOT READY: {key}: expected" in told
        aside.rename(key)
        assert second.said(r"'slow' is ready again: \d+ jobs go on")
        finished(second.address, slow, jobs)


def test_a_client_that_waits_when_it_is_killed_hears_of_it(
    place: Path, slow: tuple[Path, Path]
) -> None:
    with (
        serve(*options(place, slow)) as served,
        filled(served, slow) as jobs,
        Client(served.address) as client,
    ):
        assert client.poll(jobs[-1], 0.01) is None
        os.kill(served.process.pid, signal.SIGKILL)
        with pytest.raises(Unavailable) as raised:
            client.wait(jobs[-1])
    assert str(raised.value).startswith(f"unix://{place}/s: ")


def test_two_daemons_of_one_journal(place: Path, slow: tuple[Path, Path]) -> None:
    with serve(*options(place, slow)) as first:
        assert first.address
        second = [
            str(word).replace(f"{place}/s", f"{place}/other") if "unix" in str(word) else word
            for word in options(place, slow)
        ]
        with serve(*second) as other:
            assert other.ended() == 3
            (line,) = [line for line in other.log if line.startswith("cuzk: ")]
        assert str(first.process.pid) in line
        assert first.process.poll() is None


def test_an_address_in_use(place: Path, slow: tuple[Path, Path]) -> None:
    """A port, and a socket that somebody listens on: nothing is started and nothing is removed."""
    more: list[str | Path] = [
        "--circuit",
        f"slow={slow[0]}",
        "--device",
        "cpu",
        "--state",
        place / "state",
    ]
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = f"127.0.0.1:{taken.getsockname()[1]}"
        for own in (["--listen", port], ["--status", port]):
            with serve(*own, *more) as served:
                assert served.ended() == 3
                assert port in served.log[-1]
                assert served.log[-1].startswith("cuzk: ")
    with socket.socket(socket.AF_UNIX) as live:
        live.bind(str(place / "live"))
        live.listen()
        with serve("--listen", f"unix://{place}/live", *more) as served:
            assert served.ended() == 3
            assert str(os.getpid()) in served.log[-1]
    assert (place / "live").is_socket()


def test_mistakes_in_settings_are_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = tmp_path / "cuzk.toml"

    def refused(*arguments: str | Path, text: str = "") -> str:
        settings.write_text(text)
        assert app.run(["serve", *map(str, arguments)]) == 2
        shown = capsys.readouterr()
        assert shown.out == ""
        assert shown.err.count("\n") == 1
        return shown.err.removeprefix("cuzk: ")

    line = refused("--config", settings, text='[daemon]\nlisten = "0.0.0.0:9820"\n')
    assert "daemon.listen" in line
    assert "allow_remote" in line
    assert "limits" in refused("--config", settings, text="[queue]\nlimits = 3\n")
    assert "expected ID=KEY, found 'key.zkey'" in refused("--circuit", "key.zkey")
    assert refused("--listen", "9820").startswith("options: daemon.listen")
    assert refused("--device", "gpu").startswith("options: devices.use")
    assert "none.toml" in refused("--config", tmp_path / "none.toml")


def test_a_check_says_what_is_ready(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And starts nothing: no journal is made."""
    made = files("bn254")
    (tmp_path / "cuzk.toml").write_text(
        f'[daemon]\nstate = "state"\n[[circuit]]\nid = "cubic"\nkind = "circom"\nkey = "{made.zkey}"\n'
    )
    monkeypatch.chdir(tmp_path)
    assert app.run(["serve", "--config", "cuzk.toml", "--circuit", "gone=n.zkey", "--check"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split()[:3] == ["cubic", "ready", "circuit"]
    assert lines[2].startswith("gone ")
    assert " NOT READY  " in lines[2]
    assert lines[3].startswith("gone: NOT READY: ")
    assert "n.zkey" in lines[3]
    assert not (tmp_path / "state").exists()


def test_with_a_certificate_and_a_token_nobody_else_gets_in(
    place: Path, slow: tuple[Path, Path]
) -> None:
    """Over gRPC and over HTTP, on loopback, too."""
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
         "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
         "-keyout", place / "key.pem", "-out", place / "own.pem"],
        check=True, capture_output=True,
    )  # fmt: skip
    (place / "token").write_text("0123456789abcdef0123456789abcdef\n")
    for name in ("key.pem", "token"):
        (place / name).chmod(0o600)
    (place / "cuzk.toml").write_text(
        '[daemon]\nstate = "state"\n[security]\n'
        'tls_certificate = "own.pem"\ntls_key = "key.pem"\ntoken_file = "token"\n'
    )
    work: list[str | Path] = ["--circuit", f"slow={slow[0]}", "--device", "cpu"]
    with serve("--config", place / "cuzk.toml", *work) as served:
        ours: list[str | Path] = [
            "--address",
            served.address,
            "--tls-certificate",
            place / "own.pem",
        ]
        outputs: list[str | Path] = ["-o", place / "p.json", "--public", place / "s.json"]
        submit: list[str | Path] = ["submit", "slow", slow[1], "--wait", *outputs]
        assert cuzk(*submit, *ours, "--token-file", place / "token").status == 0
        assert library.verify(
            library.load_verifying_key(slow[0]),
            library.load_public(place / "s.json", BN254),
            library.load_proof(place / "p.json", BN254),
        )
        assert "expected a token" in error_line(cuzk("status", *ours))
        with Client(served.address) as plain, pytest.raises(Unavailable):
            plain.status()
        trusted = ssl.create_default_context(cafile=place / "own.pem")
        with pytest.raises(HTTPError, match="401"):
            urlopen(f"{served.page}/status", context=trusted)
        assert served.page.startswith("https://")


def test_a_service_manager_is_told(place: Path, slow: tuple[Path, Path]) -> None:
    """READY when it takes requests, signs of life, STOPPING; and its journal gets no times."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(place / "notify"))
        manager.settimeout(PATIENCE)
        variables = {"NOTIFY_SOCKET": str(place / "notify"), "WATCHDOG_USEC": "200000"}
        with serve(*options(place, slow), variables=variables) as served:
            assert manager.recv(100) == b"READY=1"
            assert served.address
            assert manager.recv(100) == b"WATCHDOG=1"
            assert manager.recv(100) == b"WATCHDOG=1"
            served.signal(signal.SIGTERM)
            told = {manager.recv(100)}
            stopping = b"STOPPING=1\nEXTEND_TIMEOUT_USEC=360000000"  # daemon.drain and a minute
            while stopping not in told:
                told.add(manager.recv(100))
            assert told <= {stopping, b"WATCHDOG=1"}
            assert served.ended() == 0


@pytest.mark.parametrize("moment", ["journal: ", "circuit slow: "])
def test_a_signal_while_it_starts_ends_it(
    place: Path, slow: tuple[Path, Path], moment: str
) -> None:
    with serve(*options(place, slow)) as served:
        served.said(moment)
        served.signal(signal.SIGTERM)
        assert served.ended() == 0
    assert not (place / "s").exists()


def test_a_drain_has_an_end(place: Path, slow: tuple[Path, Path]) -> None:
    (place / "cuzk.toml").write_text("[daemon]\ndrain = 0.2\n")
    with serve("--config", place / "cuzk.toml", *options(place, slow)) as served:
        with filled(served, slow) as jobs:
            served.signal(signal.SIGTERM)
            assert served.ended() == 0
        assert 0 < int(served.said(r"ended; (\d+) jobs are unfinished")[1]) < len(jobs)
