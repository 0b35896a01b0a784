"""The journal: what it returned from is there again after a restart, and what cannot be is refused."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from journal_jobs import DONE, MARK, make_job, part_proof
from journal_jobs import folder as folder
from journal_jobs import journal as journal

from cuzk.engine.job import Outcome, Partition, State
from cuzk.engine.journal import Journal
from cuzk.engine.request import Payload
from cuzk.errors import EngineError


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
            await first.accept(make_job(number, spool.payload(9, len(MARK) - 9)))
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
