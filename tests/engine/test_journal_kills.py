"""kill -9 at any moment: what the journal returned from is there, the lock is free, files of nobody are gone."""

from __future__ import annotations

import asyncio
import json
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path

import pytest

import cuzk
from cuzk.engine.job import Outcome, State
from cuzk.engine.journal import Journal
from cuzk.errors import Unavailable

CHILD = """
import asyncio, json, random, sys
from hashlib import blake2b
from pathlib import Path
from cuzk.engine.catalogue import PartProof
from cuzk.engine.job import Job, Outcome, Partition, State
from cuzk.engine.journal import Journal
from cuzk.engine.request import Payload, Priority, Request

journal = Journal(Path(sys.argv[1]))

def say(*words):
    print(json.dumps(words), flush=True)

async def finish(job):
    for part in job.partitions:
        if part.proof is None:
            proof = f"{job.id} {part.number}".encode()
            await journal.part(job.id, part.number, PartProof(proof, {}, "cpu"))
            say("part", job.id, part.number)
    await journal.end(job.id, Outcome(State.DONE, job.request.digest()))
    say("end", job.id, job.digest.hex())

def request(number):
    data = blake2b(str(number).encode()).digest() * (1 + number * 37 % 900)
    payload = Payload.of(data)
    spool = None
    if number % 3 == 0:
        spool = journal.spool(len(data))
        spool.write(data)
        payload = spool.payload(0, len(data))
    return Request(f"job-{number}", "circuit", Priority.LOW, {"n": number}, (payload,)), spool

async def main():
    found = journal.recover()
    say("start", found.next_number)
    await asyncio.gather(*map(finish, found.jobs))
    numbers = iter(range(found.next_number, 10**9))

    async def lane():
        for number in numbers:
            wanted, spool = request(number)
            partitions = [Partition(i) for i in range(1 + number % 4)]
            job = Job(wanted, number, wanted.digest(), "c", partitions, float(number))
            await journal.accept(job)
            if spool:
                spool.discard()
            say("accept", job.id, job.digest.hex())
            await finish(job)

    await asyncio.gather(*[lane() for _ in range(6)])

asyncio.run(main())
"""


@contextmanager
def daemon(folder: Path) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(folder)],
        stdout=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": str(Path(cuzk.__file__).parents[1])},
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def killed(folder: Path, lines: int) -> list[list[str]]:
    """What it had said when it was killed, after so many lines; a line that is cut off was not said."""
    with daemon(folder) as process:
        assert process.stdout is not None
        said = [process.stdout.readline() for _ in range(lines)]
        process.send_signal(signal.SIGKILL)
        said += process.stdout.readlines()
        assert process.wait() == -signal.SIGKILL
    return [json.loads(line) for line in said if line.endswith("\n")]


def kill_often(folder: Path, rounds: int) -> tuple[int, int]:
    """Jobs that are done, and rounds that left some unfinished."""
    chance = random.Random(rounds)
    accepted: dict[str, str] = {}
    parts: set[tuple[str, int]] = set()
    ended: dict[str, str] = {}
    unfinished = 0
    for _ in range(rounds):
        for word, *rest in killed(folder, chance.randrange(1, 120)):
            if word == "accept":
                accepted[rest[0]] = rest[1]
            elif word == "part":
                part = (rest[0], int(rest[1]))
                assert part not in parts, "proved twice"
                parts.add(part)
            elif word == "end":
                assert rest[0] not in ended, "ended twice"
                ended[rest[0]] = rest[1]
        journal = Journal(folder)  # the lock of the killed one is no obstacle
        alive = {job.id: job for job in journal.recover().jobs}
        unfinished += bool(alive)
        for job_id, job in alive.items():
            assert job_id not in ended
            assert job.request.digest() == job.digest  # the payload is whole
        for job_id, digest in accepted.items():
            outcome = journal.outcome(job_id)
            if job_id in alive:
                assert outcome is None
                assert alive[job_id].digest.hex() == digest
            else:
                assert outcome is not None, f"{job_id} is lost"
                assert outcome[0].hex() == digest
                assert outcome[2].proof.hex() == digest
        for job_id in ended:
            assert journal.outcome(job_id) is not None, f"{job_id}'s proof is lost"
        for job_id, number in parts:
            if job_id in alive:
                assert alive[job_id].partitions[number].proof == f"{job_id} {number}".encode()
        files = {p.path for job in alive.values() for p in job.request.payload if p.path}
        assert set((folder / "payloads").iterdir()) == files
        assert [v for v in journal.recent(10**6) if v.state != State.DONE.value] == []
        journal.close()
    return len(ended), unfinished


def test_what_was_said_is_there_after_kill_9(tmp_path: Path) -> None:
    done, unfinished = kill_often(tmp_path / "state", 6)
    assert done > 10
    assert unfinished > 2


@pytest.mark.slow
def test_what_was_said_is_there_after_100_times_kill_9(tmp_path: Path) -> None:
    done, unfinished = kill_often(tmp_path / "state", 100)
    assert done > 500
    assert unfinished > 80


def test_a_second_daemon_names_the_first_and_follows_it_at_once_when_it_is_killed(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "state"
    with daemon(folder) as process:
        assert process.stdout is not None
        process.stdout.readline()
        with pytest.raises(Unavailable, match=f"in use by process {process.pid}: stop that daemon"):
            Journal(folder)
        process.kill()
        process.wait()
        journal = Journal(folder)
        journal.close()


def test_no_witness_is_left_by_a_killed_daemon_when_its_jobs_have_ended(tmp_path: Path) -> None:
    """Nor in the log that it did not come to write back."""
    folder = tmp_path / "state"
    killed(folder, 150)
    for _ in range(2):  # the second finishes what the first left, and is killed, too
        killed(folder, 60)

    def contents() -> bytes:
        return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())

    def found(data: bytes) -> set[int]:
        """Payloads repeat a mark each."""
        marks = {n: blake2b(str(n).encode()).digest() for n in range(1, recovered.next_number)}
        return {number for number, mark in marks.items() if mark in data}

    left = contents()
    journal = Journal(folder)
    recovered = journal.recover()
    alive = recovered.jobs
    assert {job.number for job in alive} <= found(left)  # they can be seen
    for job in alive:
        asyncio.run(journal.end(job.id, Outcome(State.CANCELLED)))
    journal.close()
    assert found(contents()) == set()
