"""The journal's thread: what waits is one transaction, a failure is its own call's, nobody waits for a commit."""

from __future__ import annotations

import asyncio
import resource
import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest
from journal_jobs import DONE, MARK, SOON, held, make_job, wait_until
from journal_jobs import folder as folder
from journal_jobs import journal as journal

from cuzk.engine.journal import Journal
from cuzk.engine.request import Payload
from cuzk.errors import EngineError, Unavailable


def commits(journal: Journal, seen: list[str]) -> None:
    journal._writer._connection.set_trace_callback(seen.append)


def test_calls_that_wait_become_one_transaction(journal: Journal) -> None:
    seen: list[str] = []

    async def work() -> None:
        with held(journal):
            commits(journal, seen)
            jobs = [make_job(number, Payload.of(b"w" * 1000)) for number in range(1, 201)]
            tasks = [asyncio.ensure_future(journal.accept(job)) for job in jobs]
            await asyncio.sleep(0)
        await asyncio.gather(*tasks)

    asyncio.run(work())
    assert len(journal.recover().jobs) == 200
    assert seen.count("COMMIT") == 1 + 1  # what held it, and all of them


def test_a_call_that_cannot_be_done_fails_alone(journal: Journal) -> None:
    async def work() -> list[BaseException | None]:
        await journal.accept(make_job(1))
        bad = make_job(4)
        bad.accepted = float("nan")  # NULL to SQLite, which the column does not take
        with held(journal):
            first = asyncio.ensure_future(journal.accept(make_job(2)))
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


def test_a_call_that_succeeds_by_itself_has_not_failed(journal: Journal) -> None:
    """All calls of a transaction together may want more room than there is, and each of them less."""
    tries = []

    def once_full(_: sqlite3.Connection) -> int:
        tries.append(1)
        if len(tries) == 1:
            raise sqlite3.OperationalError("database or disk is full")
        return 7

    with held(journal):
        calls = [journal._writer.submit(call) for call in (lambda _: 1, once_full, lambda _: 2)]
    assert [call.result(SOON) for call in calls] == [1, 7, 2]
    assert len(tries) == 2


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


class LockedOnce:
    """A connection whose first COMMIT finds the database locked, which leaves its transaction open."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._locked = True

    def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
        if sql == "COMMIT" and self._locked:
            self._locked = False
            raise sqlite3.OperationalError("database is locked")
        return self._connection.execute(sql, *values)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


def test_a_commit_that_failed_leaves_nothing_of_its_calls(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked = LockedOnce(journal._writer._connection)
    monkeypatch.setattr(journal._writer, "_connection", locked)
    with pytest.raises(EngineError, match="cannot be written: database is locked"):
        asyncio.run(journal.accept(make_job(1)))
    asyncio.run(journal.accept(make_job(2)))
    assert [job.number for job in journal.recover().jobs] == [2]


@pytest.mark.parametrize(("calls", "nbytes"), [(10, 1 << 30), (1000, 25_000)])
def test_a_transaction_has_its_limits(
    journal: Journal, monkeypatch: pytest.MonkeyPatch, calls: int, nbytes: int
) -> None:
    """In calls and in bytes: those of the first are not kept waiting for all that came after them."""
    monkeypatch.setattr("cuzk.engine.writer.GROUP_CALLS", calls)
    monkeypatch.setattr("cuzk.engine.writer.GROUP_BYTES", nbytes)
    seen: list[str] = []

    async def work() -> None:
        with held(journal):
            commits(journal, seen)
            jobs = [make_job(number, Payload.of(b"w" * 2500)) for number in range(1, 41)]
            tasks = [asyncio.ensure_future(journal.accept(job)) for job in jobs]
            await asyncio.sleep(0)
        await asyncio.gather(*tasks)

    asyncio.run(work())
    assert seen.count("COMMIT") == 1 + 4  # what held it, and ten each


@pytest.mark.parametrize("error", [OSError(5, "no"), sqlite3.OperationalError("disk I/O error")])
def test_a_log_that_cannot_be_cut_stops_nobody(
    journal: Journal, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    tried = threading.Event()

    def fail(*, idle: bool) -> None:
        if idle:
            tried.set()
        raise error

    monkeypatch.setattr(journal._writer, "_tidy", fail)
    asyncio.run(journal.accept(make_job(1)))
    assert tried.wait(SOON)
    asyncio.run(asyncio.wait_for(journal.accept(make_job(2)), SOON))
    monkeypatch.undo()


def test_a_full_database_is_an_error_and_leaves_room_for_what_fits(journal: Journal) -> None:
    pages = journal._writer._connection.execute("PRAGMA page_count").fetchone()[0]
    journal._writer._connection.execute(f"PRAGMA max_page_count={pages + 8}")
    with pytest.raises(EngineError, match="cannot be written: database or disk is full"):
        asyncio.run(journal.accept(make_job(1, Payload.of(b"w" * 100_000))))
    asyncio.run(journal.accept(make_job(2)))
    assert [job.number for job in journal.recover().jobs] == [2]


def test_neither_the_loop_nor_a_reader_waits_for_a_commit(journal: Journal) -> None:
    """It is in the middle of one until they have gone on."""

    async def work() -> None:
        await journal.accept(make_job(1))
        await journal.end("job-1", DONE)
        with held(journal):
            waiting = asyncio.ensure_future(journal.accept(make_job(2, Payload.of(MARK))))
            for _ in range(100):
                await asyncio.sleep(0)
                assert journal.outcome("job-1") is not None
            assert journal.recover().jobs == []
            assert not waiting.done()
        await waiting

    asyncio.run(work())
    assert [job.id for job in journal.recover().jobs] == ["job-2"]


def test_who_stops_waiting_does_not_stop_the_write(journal: Journal) -> None:
    async def work() -> None:
        spool = journal.spool()
        spool.write(MARK)
        with held(journal):
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
    asyncio.run(asyncio.wait_for(journal.accept(make_job(3)), SOON))  # and the writer goes on
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
    assert set(threading.enumerate()) <= before
    assert sorted(p.name for p in folder.iterdir()) == ["journal.sqlite", "owner", "payloads"]
    with pytest.raises(Unavailable):
        journal.recent(1)
    again = Journal(folder)
    assert len(again.recover().jobs) == 49
    again.close()
