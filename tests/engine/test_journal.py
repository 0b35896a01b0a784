"""The journal: what it returned from is there again, a payload only as long as its job lives, nothing for ever."""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
import sqlite3
import stat
import tempfile
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from cuzk.engine.catalogue import PartProof
from cuzk.engine.database import connect
from cuzk.engine.job import Job, Outcome, Partition, State
from cuzk.engine.journal import Journal
from cuzk.engine.request import Payload, Priority, Request
from cuzk.errors import EngineError, FormatError, Unavailable

DONE = Outcome(State.DONE, proof=b"proof" * 40, public=b'["7"]', milliseconds={"prove": 12.5})
MARK = b"witness-that-must-not-stay-" + bytes(range(64))


def make_job(
    number: int, *payload: Payload, job_id: str = "", partitions: int = 1, accepted: float = 1000.0
) -> Job:
    request = Request(
        id=job_id or f"job-{number}",
        kind="circuit",
        priority=Priority.HIGH,
        fields={"circuit_id": "c", "sector": 2**60, "comm_r": b"\x00\xff\n"},
        payload=payload,
        deadline=2000.25,
        client="unix:1",
        named=False,
    )
    parts = [Partition(i) for i in range(partitions)]
    return Job(request, number, bytes([number % 256]) * 32, "c", parts, accepted)


def part_proof(text: str) -> PartProof:
    spans = (("host", "prove", 10.0, 11.5), ("host", "verify", 11.5, 12.0))
    return PartProof(text.encode(), {"prove": 1.5}, "cpu", spans, b"public " + text.encode())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "a" / "state"


@pytest.fixture
def journal(folder: Path) -> Iterator[Journal]:
    made = Journal(folder)
    yield made
    made.close()


def wait_until(condition: Callable[[], bool], seconds: float = 10.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.01)


def places(folder: Path, marker: bytes) -> list[str]:
    """Files of the folder that hold it."""
    found = []
    for path in folder.rglob("*"):
        try:
            if path.is_file() and marker in path.read_bytes():
                found.append(path.name)
        except FileNotFoundError:
            continue
    return sorted(found)


def contents(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in folder.rglob("*") if p.is_file() and p.name != "owner"}


# --- the folder ---


def test_only_its_owner_can_read_the_folder(folder: Path) -> None:
    mask = os.umask(0)
    try:
        with_spool = Journal(folder)
        asyncio.run(with_spool.accept(make_job(1, Payload.of(MARK))))
        with_spool.spool().write(b"x")
        modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in [folder, *folder.rglob("*")]}
    finally:
        os.umask(mask)
    with_spool.close()
    folders = {modes.pop("state"), modes.pop("payloads")}
    assert folders == {0o700}
    assert {"journal.sqlite", "journal.sqlite-wal", "owner"} < set(modes)
    assert set(modes.values()) == {0o600}


def test_a_folder_that_others_can_enter_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o750)
    with pytest.raises(FormatError, match=r"mode 0750, expected 0700.*chmod 700") as caught:
        Journal(tmp_path)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_of_somebody_else_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o700)
    mine = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: 4242)
    with pytest.raises(FormatError, match=f"belongs to user {mine}, expected 4242"):
        Journal(tmp_path)


def test_a_place_where_no_folder_can_be_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(EngineError, match="file/state: cannot be made: Not a directory"):
        Journal(tmp_path / "file" / "state")


def test_a_second_daemon_hears_who_has_it(journal: Journal, folder: Path) -> None:
    with pytest.raises(Unavailable, match=f"in use by process {os.getpid()}:"):
        Journal(folder)
    journal.close()
    Journal(folder).close()


# --- damage ---


def damage(path: Path, how: str) -> None:
    data = path.read_bytes()
    match how:
        case "no SQLite":
            path.write_bytes(b"hello\n" * 3000)
        case "empty":
            path.write_bytes(b"")
        case "first bytes":
            path.write_bytes(data[:50])
        case "half":
            path.write_bytes(data[: len(data) // 2])
        case "one page":
            path.write_bytes(data[:4096] + b"\x55" * 4096 + data[8192:])
        case "gone, log left":
            path.with_name(path.name + "-wal").write_bytes(b"log")
            path.unlink()
        case "of another program" | "newer":
            with_version = sqlite3.connect(path)
            pragma = "user_version=99" if how == "newer" else "application_id=7"
            with_version.execute(f"PRAGMA {pragma}")
            with_version.commit()
            with_version.close()


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ("no SQLite", "is damaged"),
        ("empty", "is not a journal of cuzk"),
        ("first bytes", "is not a journal of cuzk"),
        ("half", "is damaged"),
        ("one page", "is damaged"),
        ("gone, log left", "is not there, but journal.sqlite-wal is"),
        ("of another program", "is not a journal of cuzk"),
        ("newer", "schema 99, this cuzk knows up to 2"),
    ],
)
def test_a_damaged_database_is_told_and_left_as_it_is(folder: Path, how: str, says: str) -> None:
    first = Journal(folder)
    asyncio.run(first.accept(make_job(1, Payload.of(MARK * 500))))
    first.close()
    path = folder / "journal.sqlite"
    whole = path.read_bytes()
    damage(path, how)
    before = contents(folder)
    with pytest.raises(FormatError, match=says) as caught:
        Journal(folder)
    assert str(path) in str(caught.value)
    assert f"move {folder} away" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert {n: d for n, d in contents(folder).items() if d and not n.endswith("-shm")} == {
        n: d for n, d in before.items() if d
    }
    (folder / "journal.sqlite-wal").unlink(missing_ok=True)
    path.write_bytes(whole)  # a copy brought back
    again = Journal(folder)
    assert [job.id for job in again.recover().jobs] == ["job-1"]
    again.close()


def test_damage_is_left_as_it_is_with_the_log_of_a_killed_daemon(
    folder: Path, tmp_path: Path
) -> None:
    first = Journal(folder)
    asyncio.run(first.accept(make_job(1, Payload.of(MARK * 500))))
    wait_until(lambda: (folder / "journal.sqlite-wal").stat().st_size == 0)
    asyncio.run(first.accept(make_job(2)))
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)  # as kill -9 leaves it
    first.close()
    copy.chmod(0o700)
    assert (copy / "journal.sqlite-wal").stat().st_size > 0
    data = (copy / "journal.sqlite").read_bytes()
    (copy / "journal.sqlite").write_bytes(data[: len(data) - 3 * 4096])
    before = contents(copy)
    with pytest.raises(FormatError, match="is damaged"):
        Journal(copy)
    after = contents(copy)
    assert after["journal.sqlite"] == before["journal.sqlite"]
    assert after["journal.sqlite-wal"] == before["journal.sqlite-wal"]


# --- jobs ---


def test_an_accepted_job_is_there_after_a_restart_as_it_was(folder: Path) -> None:
    first = Journal(folder)
    spool = first.spool()
    spool.write(b"..." + MARK * 100 + b"...")
    payload = (Payload.of(b"small"), spool.payload(3, len(MARK) * 100), Payload.of(b""))
    job = make_job(5, *payload, partitions=3)

    async def work() -> None:
        await first.accept(job)
        spool.discard()
        await first.accept(make_job(7))
        await first.part(job.id, 2, part_proof("two"))
        job.started, job.losses, job.state = 1001.5, 2, State.PROVING
        await first.mark(job)

    asyncio.run(work())
    first.close()
    second = Journal(folder)
    recovered = second.recover()
    assert recovered.next_number == 8
    got, other = recovered.jobs
    assert other.id == "job-7"
    assert [bytes(p.view()) for p in got.request.payload] == [b"small", MARK * 100, b""]
    assert got.request.digest() == job.request.digest()
    assert got.request == job.request
    assert (got.number, got.digest, got.circuit, got.accepted) == (5, b"\x05" * 32, "c", 1000.0)
    assert (got.state, got.started, got.losses) == (State.QUEUED, 1001.5, 2)
    proved = Partition(2, "cpu", 10.0, 12.0, b"two", {"prove": 1.5}, b"public two")
    assert got.partitions == [Partition(0), Partition(1), proved]
    second.close()


def test_an_id_is_taken_while_its_job_lives_or_is_done(journal: Journal) -> None:
    async def work() -> None:
        await journal.accept(make_job(1, job_id="x"))
        with pytest.raises(EngineError, match="x: accepted again, while it is queued"):
            await journal.accept(make_job(2, job_id="x"))
        await journal.end("x", Outcome(State.FAILED, code="kernel", message="no"))
        await journal.accept(make_job(2, job_id="x", partitions=2))
        assert journal.outcome("x") is None
        await journal.part("x", 1, part_proof("p"))
        await journal.end("x", Outcome(State.CANCELLED))
        await journal.accept(make_job(3, job_id="x"))
        await journal.end("x", DONE)
        with pytest.raises(EngineError, match="while it is done"):
            await journal.accept(make_job(4, job_id="x"))
        with pytest.raises(EngineError, match="its number 3 is that of x"):
            await journal.accept(make_job(3, job_id="y"))

    asyncio.run(work())
    assert [view.number for view in journal.recent(9)] == [3]
    assert journal.recover().next_number == 4


def test_what_cannot_be_is_refused(journal: Journal, tmp_path: Path) -> None:
    async def work() -> None:
        with pytest.raises(EngineError, match="nobody: written to, while it is unknown"):
            await journal.part("nobody", 0, part_proof("p"))
        with pytest.raises(EngineError, match="unknown"):
            await journal.end("nobody", DONE)
        await journal.accept(make_job(1, job_id="x"))
        with pytest.raises(EngineError, match="x: partition 1 of 1"):
            await journal.part("x", 1, part_proof("p"))
        with pytest.raises(EngineError, match="ended, while it is proving"):
            await journal.end("x", Outcome(State.PROVING))
        await journal.end("x", DONE)
        for again in (journal.part("x", 0, part_proof("p")), journal.end("x", DONE)):
            with pytest.raises(EngineError, match="x: written to, while it is done"):
                await again
        with pytest.raises(EngineError, match="a payload outside of"):
            await journal.accept(make_job(2, Payload(path=tmp_path / "elsewhere", size=1)))
        ended = make_job(3)
        ended.state = State.DONE
        with pytest.raises(EngineError, match="is done cannot be accepted"):
            await journal.accept(ended)

    asyncio.run(work())


def test_outcomes_are_there_after_a_restart(folder: Path) -> None:
    first = Journal(folder, clock=lambda: 1234.5)
    failed = Outcome(State.FAILED, code="deadline", message="not done in time")

    async def work() -> None:
        for number in (1, 2, 3):
            await first.accept(make_job(number, Payload.of(b"12345"), partitions=2))
        await first.part("job-2", 1, part_proof("p"))
        await first.end("job-2", DONE, started=1010.0, ended=1020.0)
        await first.end("job-1", failed)

    asyncio.run(work())
    first.close()
    second = Journal(folder)
    assert [view.id for view in second.recent(9)] == ["job-1", "job-2"]
    assert [view.id for view in second.recent(1)] == ["job-1"]
    assert second.outcome("job-3") is None
    assert second.outcome("job-4") is None
    got = second.outcome("job-2")
    assert got is not None
    digest, view, outcome = got
    assert (digest, outcome) == (b"\x02" * 32, DONE)
    assert (view.state, view.accepted, view.started, view.ended, view.age) == (
        "done", 1000.0, 1010.0, 1020.0, 20.0)  # fmt: skip
    assert (view.kind, view.priority, view.payload_bytes, view.deadline, view.client) == (
        "circuit", "high", 5, 2000.25, "unix:1")  # fmt: skip
    assert [(p.state, p.worker, p.started) for p in view.partitions] == [
        ("pending", "", 0.0), ("done", "cpu", 10.0)]  # fmt: skip
    assert view == second.recent(2)[1]
    other = second.outcome("job-1")
    assert other is not None
    assert other[2] == failed
    assert (other[1].ended, other[1].code, other[1].message) == (
        1234.5, "deadline", "not done in time")  # fmt: skip
    assert [job.id for job in second.recover().jobs] == ["job-3"]
    second.close()


def test_a_job_whose_payload_is_lost_has_failed(folder: Path) -> None:
    first = Journal(folder)

    async def work() -> list[Path]:
        paths = []
        for number in (1, 2, 3):
            spool = first.spool()
            spool.write(MARK)
            await first.accept(make_job(number, spool.payload(0, len(MARK))))
            paths.append(spool.path)
        return paths

    gone, short, _ = asyncio.run(work())
    first.close()
    gone.unlink()
    short.write_bytes(MARK[:-1])
    second = Journal(folder)
    assert [job.id for job in second.recover().jobs] == ["job-3"]
    messages = {view.id: view.message for view in second.recent(9)}
    assert "payload is gone" in messages["job-1"]
    assert f"has {len(MARK) - 1} bytes, expected {len(MARK)}" in messages["job-2"]
    assert second.recover().next_number == 4
    second.close()


def test_numbers_only_rise(journal: Journal) -> None:
    asyncio.run(journal.accept(make_job(9)))
    asyncio.run(journal.accept(make_job(4)))
    recovered = journal.recover()
    assert [job.number for job in recovered.jobs] == [4, 9]
    assert recovered.next_number == 10


# --- nothing is kept for ever ---


def test_partitions_proofs_are_forgotten_when_the_job_has_ended(folder: Path) -> None:
    journal = Journal(folder)

    async def work() -> None:
        await journal.accept(make_job(1, partitions=2))
        for number in (0, 1):
            await journal.part("job-1", number, part_proof(f"the proof of {number}"))
        assert places(folder, b"the proof of 1") != []
        await journal.end("job-1", DONE)

    asyncio.run(work())
    journal.close()
    assert places(folder, b"the proof of") == []
    assert places(folder, DONE.proof) == ["journal.sqlite"]


@pytest.mark.parametrize("state", [State.DONE, State.FAILED, State.CANCELLED])
@pytest.mark.parametrize("in_file", [False, True], ids=["blob", "file"])
def test_no_byte_of_a_witness_stays_when_its_job_has_ended(
    folder: Path, state: State, in_file: bool
) -> None:
    journal = Journal(folder)

    async def work() -> None:
        for number in range(1, 6):
            payload = Payload.of(MARK * 1500)
            if in_file:
                spool = journal.spool()
                spool.write(MARK * 1500)
                payload = spool.payload(0, spool.size)
            await journal.accept(make_job(number, payload))
        assert places(folder, MARK) != []  # this test can see them
        for number in (2, 4, 1, 3, 5):
            await journal.end(f"job-{number}", Outcome(state, proof=b"p" * 192))

    asyncio.run(work())
    if in_file:
        assert places(folder, MARK) == []
        assert list((folder / "payloads").iterdir()) == []
    wait_until(lambda: places(folder, MARK[:27]) == [])  # nobody does anything: idle
    journal.close()
    assert places(folder, MARK[:27]) == []


def test_a_log_is_cut_when_calls_never_stop(folder: Path) -> None:
    """Payloads of ended jobs stay no longer in it than until it is full."""
    journal = Journal(folder)
    size = 0

    async def work() -> int:
        largest = 0
        for number in range(1, 90):
            await journal.accept(make_job(number, Payload.of(os.urandom(1 << 19))))
            await journal.end(f"job-{number}", DONE)
            largest = max(largest, (folder / "journal.sqlite-wal").stat().st_size)
        return largest

    size = asyncio.run(work())
    assert 4 << 20 < size < 16 << 20
    journal.close()


def through(journal: Journal, count: int) -> int:
    """Jobs from acceptance to the end, 64 at a time: the most bytes that the folder had."""
    largest = 0

    async def lane(first: int) -> None:
        nonlocal largest
        for number in range(first, count + 1, 64):
            await journal.accept(make_job(number, Payload.of(b"w" * 4000)))
            await journal.part(f"job-{number}", 0, part_proof("p"))
            await journal.end(f"job-{number}", DONE, ended=float(number))
            if number % 500 == 0:
                await asyncio.to_thread(journal.expire, number - 500.0)
                largest = max(largest, journal.nbytes())

    async def work() -> None:
        await asyncio.gather(*[lane(first) for first in range(1, 65)])

    asyncio.run(work())
    return largest


def check_flat(folder: Path, count: int) -> None:
    journal = Journal(folder)
    largest = through(journal, count)
    kept = len(journal.recent(count))
    assert 0 < kept <= 1100
    assert largest < 24 << 20  # the log's limit, and what lives
    assert journal.expire(1e9) == kept
    wait_until(lambda: (folder / "journal.sqlite").stat().st_size < 5 << 20)
    wait_until(lambda: (folder / "journal.sqlite-wal").stat().st_size == 0)
    assert journal.recent(9) == []
    journal.close()


def test_results_are_forgotten_and_the_file_stays_small(folder: Path) -> None:
    check_flat(folder, 1500)


@pytest.mark.slow
def test_ten_thousand_jobs_leave_the_file_small(folder: Path) -> None:
    check_flat(folder, 10_000)


def test_a_file_gives_back_what_many_payloads_took(folder: Path) -> None:
    journal = Journal(folder)

    async def work() -> None:
        await asyncio.gather(
            *[journal.accept(make_job(n, Payload.of(b"w" * (1 << 19)))) for n in range(1, 41)]
        )
        wait_until(lambda: (folder / "journal.sqlite").stat().st_size > 20 << 20)
        await asyncio.gather(*[journal.end(f"job-{n}", DONE) for n in range(1, 41)])

    asyncio.run(work())
    wait_until(lambda: (folder / "journal.sqlite").stat().st_size < 5 << 20)
    journal.close()


def test_expire_forgets_those_that_ended_earlier_only(journal: Journal) -> None:
    async def work() -> None:
        for number in range(1, 1205):
            last = asyncio.ensure_future(journal.accept(make_job(number)))
        await last
        for number in range(2, 1205):
            last = asyncio.ensure_future(
                journal.end(f"job-{number}", DONE, ended=0.5 if number < 1204 else 2.0)
            )
        await last

    asyncio.run(work())
    assert journal.expire(2.0) == 1202
    assert journal.expire(2.0) == 0
    assert [view.id for view in journal.recent(5000)] == ["job-1204"]
    assert [job.id for job in journal.recover().jobs] == ["job-1"]
    assert journal.outcome("job-3") is None
    assert journal.expire(2.5) == 1
    assert journal.recover().next_number == 1205  # forgotten numbers do not come back


def test_a_payload_in_a_file_is_not_copied(journal: Journal) -> None:
    spool = journal.spool()
    for _ in range(32):
        spool.write(bytes(1 << 20))
    inode = spool.path.stat().st_ino
    tracemalloc.start()
    try:
        asyncio.run(journal.accept(make_job(1, spool.payload(0, 32 << 20), partitions=10)))
        asyncio.run(journal.part("job-1", 3, part_proof("p")))
        job = journal.recover().jobs[0]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    path = job.request.payload[0].path
    assert path is not None
    assert path.stat().st_ino == inode
    assert peak < 1 << 20
    assert 32 << 20 < journal.nbytes() < 34 << 20


# --- the writer ---


def commits(journal: Journal, seen: list[str]) -> None:
    journal._writer._connection.set_trace_callback(seen.append)


def test_calls_that_wait_become_one_transaction(journal: Journal) -> None:
    seen: list[str] = []
    commits(journal, seen)

    async def work() -> None:
        jobs = [make_job(number, Payload.of(b"w" * 1000)) for number in range(1, 201)]
        await asyncio.gather(*[journal.accept(job) for job in jobs])

    asyncio.run(work())
    assert len(journal.recover().jobs) == 200
    assert 1 <= seen.count("COMMIT") <= 20


class Stop:
    """Another program has the database's write lock, so that calls gather in the writer."""

    def __init__(self, folder: Path) -> None:
        self.connection = connect(folder / "journal.sqlite")

    def __enter__(self) -> Stop:
        self.connection.execute("BEGIN IMMEDIATE")
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.execute("ROLLBACK")
        self.connection.close()


def test_a_call_that_cannot_be_done_fails_alone(journal: Journal, folder: Path) -> None:
    async def work() -> list[BaseException | None]:
        await journal.accept(make_job(1))
        bad = make_job(4)
        bad.accepted = float("nan")  # NULL to SQLite, which the column does not take
        with Stop(folder):
            first = asyncio.ensure_future(journal.accept(make_job(2)))
            await asyncio.sleep(0)
            tasks = [
                asyncio.ensure_future(journal.accept(job))
                for job in (make_job(3), bad, make_job(9, job_id="job-1"), make_job(5))
            ]
            await asyncio.sleep(0)
        await first
        return await asyncio.gather(*tasks, return_exceptions=True)

    fine, null, again, too = asyncio.run(work())
    assert fine is None
    assert too is None
    assert isinstance(null, EngineError)
    assert "NOT NULL constraint failed: jobs.accepted" in str(null)
    assert isinstance(again, EngineError)
    assert "accepted again" in str(again)
    assert [job.number for job in journal.recover().jobs] == [1, 2, 3, 5]


def test_a_commit_that_fails_fails_its_calls_and_no_later_ones(journal: Journal) -> None:
    """A file may not grow: as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    async def accept(numbers: range) -> list[BaseException | None]:
        jobs = [make_job(number, Payload.of(b"w" * 100_000)) for number in numbers]
        return await asyncio.gather(*map(journal.accept, jobs), return_exceptions=True)

    assert asyncio.run(accept(range(1, 3))) == [None, None]
    resource.setrlimit(resource.RLIMIT_FSIZE, (64 << 10, hard))
    try:
        answers = asyncio.run(accept(range(3, 8)))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert {type(answer) for answer in answers} == {EngineError}
    assert all("journal.sqlite: cannot be written: " in str(answer) for answer in answers)
    assert all("\n" not in str(answer) for answer in answers)
    assert [job.number for job in journal.recover().jobs] == [1, 2]
    assert asyncio.run(accept(range(3, 8))) == [None] * 5
    assert [job.number for job in journal.recover().jobs] == [1, 2, 3, 4, 5, 6, 7]


def test_a_full_database_is_an_error_and_leaves_room_for_what_fits(journal: Journal) -> None:
    pages = journal._writer._connection.execute("PRAGMA page_count").fetchone()[0]
    journal._writer._connection.execute(f"PRAGMA max_page_count={pages + 8}")
    with pytest.raises(EngineError, match="cannot be written: database or disk is full"):
        asyncio.run(journal.accept(make_job(1, Payload.of(b"w" * 100_000))))
    asyncio.run(journal.accept(make_job(2)))
    assert [job.number for job in journal.recover().jobs] == [2]


def test_neither_the_loop_nor_a_reader_waits_for_a_commit(journal: Journal, folder: Path) -> None:
    async def work() -> None:
        await journal.accept(make_job(1))
        await journal.end("job-1", DONE)
        with Stop(folder):
            waiting = asyncio.ensure_future(journal.accept(make_job(2, Payload.of(MARK))))
            start = time.monotonic()
            for _ in range(100):
                await asyncio.sleep(0)
                assert journal.outcome("job-1") is not None
            assert journal.recover().jobs == []
            assert time.monotonic() - start < 2.0  # far below the 5 s of a lock
            assert not waiting.done()
        await waiting

    asyncio.run(work())
    assert [job.id for job in journal.recover().jobs] == ["job-2"]


def test_who_stops_waiting_does_not_stop_the_write(journal: Journal, folder: Path) -> None:
    async def work() -> None:
        spool = journal.spool()
        spool.write(MARK)
        with Stop(folder):
            tasks = [
                asyncio.ensure_future(journal.accept(make_job(1))),
                asyncio.ensure_future(journal.accept(make_job(2, spool.payload(0, len(MARK))))),
            ]
            await asyncio.sleep(0)
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            spool.discard()
            assert all(task.cancelled() for task in tasks)

    asyncio.run(work())
    wait_until(lambda: len(journal.recover().jobs) == 2)
    payload = journal.recover().jobs[1].request.payload[0]
    assert bytes(payload.view()) == MARK
    asyncio.run(asyncio.wait_for(journal.accept(make_job(3)), 20))  # and the writer goes on
    assert len(journal.recover().jobs) == 3


def test_close_writes_what_waits_and_leaves_no_thread(folder: Path) -> None:
    before = set(threading.enumerate())
    journal = Journal(folder)

    async def work() -> None:
        tasks = [asyncio.ensure_future(journal.accept(make_job(n))) for n in range(1, 50)]
        await asyncio.sleep(0)
        journal.close()
        journal.close()
        await asyncio.gather(*tasks)
        with pytest.raises(Unavailable, match="the journal is closed"):
            await journal.accept(make_job(60))

    asyncio.run(work())
    assert set(threading.enumerate()) == before
    assert sorted(p.name for p in folder.iterdir()) == ["journal.sqlite", "owner", "payloads"]
    with pytest.raises(Unavailable):
        journal.recent(1)
    again = Journal(folder)
    assert len(again.recover().jobs) == 49
    again.close()


# --- against a model ---

IDS = st.sampled_from(["a", "b", "c", "d"])


class Model(RuleBasedStateMachine):
    """A dictionary, and a journal that is closed and opened at any time."""

    @initialize()
    def begin(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="journal"))
        self.loop = asyncio.new_event_loop()
        self.journal = Journal(self.folder)
        self.number = 1
        self.now = 0.0
        self.jobs: dict[str, Job] = {}
        self.bytes: dict[str, list[bytes]] = {}

    def outcome(self, job_id: str) -> Outcome | None:
        return self.jobs[job_id].outcome if job_id in self.jobs else None

    @rule(job_id=IDS, payload=st.lists(st.tuples(st.binary(max_size=9000), st.booleans()), max_size=3),
          partitions=st.integers(1, 4))  # fmt: skip
    def accept(self, job_id: str, payload: list[tuple[bytes, bool]], partitions: int) -> None:
        spool = self.journal.spool()
        parts = []
        for data, in_file in payload:
            spool.write(data if in_file else b"")
            at = spool.size - len(data)
            parts.append(spool.payload(at, len(data)) if in_file else Payload.of(data))
        job = make_job(self.number, *parts, job_id=job_id, partitions=partitions, accepted=self.now)
        older = self.jobs.get(job_id)
        if older is None or older.state in (State.FAILED, State.CANCELLED):
            self.loop.run_until_complete(self.journal.accept(job))
            self.jobs[job_id] = job
            self.bytes[job_id] = [data for data, _ in payload]
            self.number += 1
        else:
            with pytest.raises(EngineError, match="accepted again"):
                self.loop.run_until_complete(self.journal.accept(job))
        spool.discard()

    @rule(job_id=IDS, number=st.integers(0, 3), text=st.text(max_size=5))
    def part(self, job_id: str, number: int, text: str) -> None:
        job = self.jobs.get(job_id)
        call = self.journal.part(job_id, number, part_proof(text))
        if job is None or job.state.ended or number >= len(job.partitions):
            with pytest.raises(EngineError):
                self.loop.run_until_complete(call)
            return
        self.loop.run_until_complete(call)
        proof = text.encode()
        job.partitions[number] = Partition(
            number, "cpu", 10.0, 12.0, proof, {"prove": 1.5}, b"public " + proof
        )

    @rule(job_id=IDS, state=st.sampled_from([State.DONE, State.FAILED, State.CANCELLED]),
          text=st.text(max_size=9))  # fmt: skip
    def end(self, job_id: str, state: State, text: str) -> None:
        job = self.jobs.get(job_id)
        self.now += 1
        outcome = Outcome(state, text.encode(), b"", "code", text, {"total": self.now})
        call = self.journal.end(job_id, outcome, ended=self.now)
        if job is None or job.state.ended:
            with pytest.raises(EngineError):
                self.loop.run_until_complete(call)
            return
        self.loop.run_until_complete(call)
        job.state, job.ended, job.outcome = state, self.now, outcome

    @rule(age=st.integers(0, 3))
    def expire(self, age: int) -> None:
        before = self.now - age
        old = [key for key, job in self.jobs.items() if job.state.ended and job.ended < before]
        assert self.journal.expire(before) == len(old)
        for key in old:
            del self.jobs[key]

    @rule()
    def reopen(self) -> None:
        self.journal.close()
        self.journal = Journal(self.folder)

    @precondition(lambda self: hasattr(self, "journal"))
    @invariant()
    def same(self) -> None:
        recovered = self.journal.recover()
        assert recovered.next_number == self.number
        alive = sorted((j for j in self.jobs.values() if not j.state.ended), key=lambda j: j.number)
        assert [j.number for j in recovered.jobs] == [j.number for j in alive]
        for got, job in zip(recovered.jobs, alive, strict=True):
            assert got == job
            assert [bytes(p.view()) for p in got.request.payload] == self.bytes[job.id]
        ended = sorted((j for j in self.jobs.values() if j.state.ended), key=lambda j: -j.ended)
        assert [view.number for view in self.journal.recent(10)] == [j.number for j in ended]
        for key in ("a", "b", "c", "d"):
            got_outcome = self.journal.outcome(key)
            assert (got_outcome[2] if got_outcome else None) == self.outcome(key)
        files = {p.path for j in alive for p in j.request.payload if p.path is not None}
        assert set((self.folder / "payloads").iterdir()) == files

    def teardown(self) -> None:
        if hasattr(self, "journal"):
            self.journal.close()
            self.loop.close()
            shutil.rmtree(self.folder)


TestModel = Model.TestCase
TestModel.settings = settings(
    max_examples=15,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
