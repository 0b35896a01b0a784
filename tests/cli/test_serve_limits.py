"""What a daemon's processes may do, and what of a witness is where."""

from __future__ import annotations

import logging
import os
import resource
import shutil
import signal
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil
import pytest
from files import slow_files

from cuzk.cli.log_limit import Sparing
from cuzk.cli.process_limits import limit_process
from cuzk.errors import CuzkError
from cuzk.server.client import Client
from daemon_process import Served, halted_at_work, serve
from until import PATIENCE

SOON = 60.0  # seconds: no bound on speed, an end for a test that would hang
NOBODY = 65534


def secrets_of(witness: bytes) -> list[bytes]:
    """Values of its last wires in all forms in which somebody might write them."""
    words = [witness[at : at + 32] for at in range(len(witness) - 640, len(witness), 32)]
    found: list[bytes] = []
    for word in words:
        value = int.from_bytes(word, "little")
        found += [word, word[::-1], b"%d" % value, b"%064x" % value, word.hex().encode()]
    assert all(len(form) >= 32 for form in found)
    return found


def holding(folder: Path, secrets: list[bytes]) -> set[str]:
    """Names of a folder's files with one of them."""
    found = set()
    for path in folder.rglob("*"):
        try:
            data = path.read_bytes() if path.is_file() else b""
        except FileNotFoundError:
            continue
        if any(secret in data for secret in secrets):
            found.add(path.name)
    return found


def test_witnesses_are_in_the_journal_while_jobs_live_and_nowhere_else() -> None:
    """At the log's finest level, with CUZK_DEBUG, with jobs that fail, a worker that crashes, a kill -9."""
    witness = slow_files()[1].read_bytes()
    broken = witness[:-33] + bytes([witness[-33] ^ 1]) + witness[-32:]
    secrets = secrets_of(witness)
    with TemporaryDirectory(prefix="cuzk-") as made:
        place = Path(made)
        key = Path(shutil.copy(slow_files()[0], place))
        (place / "tmp").mkdir()
        (place / "cuzk.toml").write_text('[daemon]\nlog_level = "debug"\n')
        options: list[str | Path] = ["--config", place / "cuzk.toml", "--listen", f"unix://{place}/s", "--status", "off"]  # fmt: skip
        options += ["--state", place / "state", "--circuit", f"slow={key}", "--device", "cpu", "--threads", "1"]  # fmt: skip
        variables = {"CUZK_DEBUG": "1", "TMPDIR": f"{place}/tmp", "HOME": f"{place}/home"}
        with serve(*options, variables=variables) as first:
            said, jobs = _use(first, witness, broken, key)
            first.process.kill()
            first.process.wait()
            assert not [s for s in secrets if any(s.decode("latin-1") in line for line in [*first.log, *said])]  # fmt: skip
        assert holding(place, secrets) <= {"journal.sqlite", "journal.sqlite-wal"}
        assert holding(place, secrets), "accepted, and not done"
        away(key).rename(key)
        with serve(*options, variables=variables) as second:
            with Client(second.address) as client:
                for job in jobs:
                    client.wait(job, PATIENCE)
            second.signal(signal.SIGTERM)
            assert second.ended() == 0
            assert not [s for s in secrets if any(s.decode("latin-1") in line for line in second.log)]  # fmt: skip
        assert not holding(place, secrets)
        modes = {path.name: path.stat().st_mode & 0o777 for path in (place / "state").rglob("*")}
        assert modes == {"journal.sqlite": 0o600, "owner": 0o600, "payloads": 0o700}


def away(key: Path) -> Path:
    return key.with_suffix(".away")


def _use(served: Served, witness: bytes, broken: bytes, key: Path) -> tuple[list[str], list[str]]:
    """Jobs that fail, a worker's crash, jobs that wait as their key is gone: all that the daemon said, and these jobs."""
    said = []
    with Client(served.address) as client:
        for given in (broken, witness[:-5], b"x" * 50 + witness[-99:]):
            with pytest.raises(CuzkError) as refused:
                client.prove_circuit("slow", given, id="bad")
            said.append(str(refused.value))
        worker = served.processes()[1]

        def submit(job: str) -> None:
            client.submit_circuit("slow", witness, id=job)

        with halted_at_work(served, client, submit) as jobs:
            key.rename(away(key))
            worker.send_signal(signal.SIGSEGV)  # it comes when this ends
        psutil.wait_procs([worker], timeout=SOON)
        served.said("SIGSEGV")
        served.said("NOT READY")
        said += [str(client.status()), client.metrics()]
    return said, jobs


def test_no_core_dumps_and_as_many_files_as_there_may_be() -> None:
    key, _ = slow_files()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (512, hard))
    try:
        with TemporaryDirectory(prefix="cuzk-") as made, serve("--state", made, "--circuit", f"slow={key}", "--device", "cpu") as served:  # fmt: skip
            assert served.address
            for process in served.processes():
                limits = Path(f"/proc/{process.pid}/limits").read_text()
                rows = {row[:25].strip(): row[25:].split() for row in limits.splitlines()}
                most = rows["Max core file size"][1]
                assert rows["Max core file size"][0] == ("0" if most == "0" else "1")
                assert int(rows["Max open files"][0]) == min(65536, hard)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_no_file_is_left_for_one_more_connection() -> None:
    """Those that there are go on, the log says so a few times, and later there is room again."""
    key, wtns = slow_files()
    with TemporaryDirectory(prefix="cuzk-") as made, serve("--state", made, "--circuit", f"slow={key}", "--device", "cpu") as served:  # fmt: skip
        host, _, port = served.address.rpartition(":")
        with Client(served.address, timeout=PATIENCE) as client:
            client.prove_circuit("slow", wtns, id="before")
            process = psutil.Process(served.process.pid)
            before = process.rlimit(psutil.RLIMIT_NOFILE)
            process.rlimit(psutil.RLIMIT_NOFILE, (process.num_fds() + 8, before[1]))
            others = [socket.create_connection((host, int(port)), SOON) for _ in range(40)]
            try:
                served.said("out of system resource")
                assert client.prove_circuit("slow", wtns, id="meanwhile").proof
            finally:
                for other in others:
                    other.close()
            process.rlimit(psutil.RLIMIT_NOFILE, before)
        with socket.create_connection((host, int(port)), SOON) as raw:
            assert raw.recv(9), (
                "it accepts again a second later, for which gRPC's client may not wait"
            )
        with Client(served.address, timeout=PATIENCE) as client:
            assert client.prove_circuit("slow", wtns, id="after").proof
        assert len([line for line in served.log if "out of system resource" in line]) < 20


def test_garbage_does_not_fill_the_log() -> None:
    """Of 300 connections that are no gRPC and 300 that are no HTTP, 20 lines each."""
    key, wtns = slow_files()
    with TemporaryDirectory(prefix="cuzk-") as made, serve("--state", made, "--circuit", f"slow={key}", "--device", "cpu") as served:  # fmt: skip
        for address in (served.address, served.page.removeprefix("http://").rstrip("/")):
            host, _, port = address.rpartition(":")
            for _ in range(300):
                with socket.create_connection((host, int(port)), SOON) as raw:
                    raw.sendall(b"\x16\x03\x01garbage\r\n\r\n" * 5)
                    raw.shutdown(socket.SHUT_WR)
                    with suppress(ConnectionResetError):
                        while raw.recv(4096):
                            pass
        with Client(served.address, timeout=PATIENCE) as client:
            assert client.prove_circuit("slow", wtns, id="after").proof
        for text in ("a connection ended", "Invalid HTTP request"):
            assert 1 <= len([line for line in served.log if text in line]) <= 20


def test_the_log_says_how_many_lines_were_left_out() -> None:
    now = [0.0]
    sparing = Sparing(lambda: now[0])
    records = [logging.LogRecord("x", 30, "", 0, "%s refused", ("one",), None) for _ in range(52)]
    assert [sparing.filter(record) for record in records[:50]] == [True] * 20 + [False] * 30
    now[0] = 60.0
    assert sparing.filter(records[50])
    assert sparing.filter(records[51])
    said = [record.getMessage() for record in records[50:]]
    assert said == ["one refused (and 30 lines left out before)", "one refused"]


@pytest.mark.parametrize(
    ("core", "files", "then"),
    [
        ((-1, -1), (1024, 4096), ((1, -1), (4096, 4096))),
        ((0, 0), (1024, 1 << 20), ((0, 0), (65536, 1 << 20))),
        ((5000, 8000), (100_000, 1 << 20), ((1, 8000), (100_000, 1 << 20))),
        ((0, -1), (64, 64), ((1, -1), (64, 64))),
    ],
)
def test_limits_that_the_system_has_set_lower_stay(
    core: tuple[int, int], files: tuple[int, int], then: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = {resource.RLIMIT_CORE: core, resource.RLIMIT_NOFILE: files}
    monkeypatch.setattr(resource, "getrlimit", now.__getitem__)
    monkeypatch.setattr(resource, "setrlimit", now.__setitem__)
    limit_process()
    assert (now[resource.RLIMIT_CORE], now[resource.RLIMIT_NOFILE]) == then


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # fork beside threads
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become somebody else")
def test_somebody_else_can_neither_connect_nor_read() -> None:
    """A folder that all can enter; the socket's mode and the state folder's keep them out."""
    key, wtns = slow_files()
    with TemporaryDirectory(prefix="cuzk-") as made:
        place = Path(made)
        place.chmod(0o755)
        with serve("--listen", f"unix://{place}/s", "--status", f"unix://{place}/h", "--state", place / "state", "--circuit", f"slow={key}", "--device", "cpu") as served:  # fmt: skip
            with Client(served.address) as client:
                client.submit_circuit("slow", wtns, id="mine")
            journal = place / "state" / "journal.sqlite"
            assert [
                as_nobody(lambda: socket.socket(socket.AF_UNIX).connect(f"{place}/s")),
                as_nobody(lambda: socket.socket(socket.AF_UNIX).connect(f"{place}/h")),
                as_nobody(journal.read_bytes),
                as_nobody(lambda: list((place / "state").iterdir())),
            ] == ["PermissionError"] * 4


def as_nobody(act: Callable[[], object]) -> str:
    """The name of the error that it ends with, in a child that has given its rights up."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            act()
            os.write(writing, b"none")
        except BaseException as error:
            os.write(writing, type(error).__name__.encode())
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading) as said:
        return said.read()
