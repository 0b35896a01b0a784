"""Nothing stays in the journal for ever: a payload as long as its job lives, a result as long as is asked."""

from __future__ import annotations

import asyncio
import os
import time
import tracemalloc
from pathlib import Path

import pytest
from journal_jobs import DONE, MARK, SOON, make_job, part_proof, places, wait_until
from journal_jobs import folder as folder
from journal_jobs import journal as journal

from cuzk.engine.job import Outcome, State
from cuzk.engine.journal import Journal
from cuzk.engine.request import Payload


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


def test_a_log_is_cut_when_calls_never_stop(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Payloads of ended jobs stay no longer in it than until it is full."""
    for pause in ("IDLE_SECONDS", "LOG_SECONDS"):
        monkeypatch.setattr(f"cuzk.engine.writer.{pause}", 1000.0)
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


def test_a_log_is_cut_when_it_is_old_and_calls_never_stop(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However small: a witness of a job that has ended goes with it."""
    monkeypatch.setattr("cuzk.engine.writer.LOG_BYTES", 1 << 40)
    monkeypatch.setattr("cuzk.engine.writer.LOG_SECONDS", 0.2)
    monkeypatch.setattr("cuzk.engine.writer.IDLE_SECONDS", 1000.0)
    journal = Journal(folder)

    async def work() -> None:
        await journal.accept(make_job(1, Payload.of(MARK)))
        await journal.end("job-1", DONE)
        until, number = time.monotonic() + SOON, 2
        while places(folder, MARK) and time.monotonic() < until:
            await journal.accept(make_job(number))
            number += 1

    asyncio.run(work())
    assert places(folder, MARK) == []
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
