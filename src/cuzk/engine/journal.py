"""What the service must not forget: accepted jobs, proved partitions, outcomes, in a folder of one daemon.

    FOLDER/owner            the daemon's lock
    FOLDER/journal.sqlite   jobs, partitions' proofs, outcomes, payloads below 1 MiB
    FOLDER/payloads/        larger ones

What a call has returned from is on the disk: it is there after kill -9 and a loss of power. A payload, which may be a
witness, is there only as long as its job lives; its bytes are overwritten in the database when it ends, and are gone from
the log 0.2 s after the last call, 10 s after the job's end at the latest.

131 KB payloads in the database, each job accepted, proved and ended (2 cores, virtual disk, 2026-11): one job at a time
1,400 commits/s, ``accept`` 0.8 ms, 76 us of the event loop a call; 32 at a time 2,800 calls/s in 104 commits/s, 37 us a call.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from cuzk.engine import recall, records
from cuzk.engine.catalogue import PartProof
from cuzk.engine.database import connect, open_database
from cuzk.engine.job import Job, Outcome, State
from cuzk.engine.owner import Owner
from cuzk.engine.request import Payload
from cuzk.engine.snapshot import JobView
from cuzk.engine.spool import Spool, Spools
from cuzk.engine.writer import Writer
from cuzk.errors import EngineError, FormatError, Unavailable

T = TypeVar("T")
SYNCING = 8  # files written back at a time


@dataclass(frozen=True)
class Recovered:
    """What an earlier daemon left: ``jobs`` that have not ended, in order."""

    jobs: list[Job]
    next_number: int


class Journal:
    """A folder, made where it is not there. From the start: FormatError where it lets others in or its database is
    damaged, Unavailable where another daemon has it, EngineError where the disk does not do.

    ``accept``, ``part``, ``mark`` and ``end`` return when it is on the disk. A task that is cancelled while it waits
    for one cancels the waiting: the write goes on. They must follow each other for one job: a job is ended by
    who has seen it accepted.
    """

    def __init__(self, folder: Path, *, clock: Callable[[], float] = time.time) -> None:
        self.folder = folder.absolute()
        self._clock = clock
        self._closing = threading.Lock()
        self._closed = False
        prepare_folder(self.folder)
        self._owner = Owner(self.folder / "owner")
        self._reading = threading.Lock()
        path = self.folder / "journal.sqlite"
        with ExitStack() as undo:
            undo.callback(self._owner.release)
            connection = undo.enter_context(closing(open_database(path)))
            self._reader = undo.enter_context(closing(connect(path)))
            connection.row_factory = self._reader.row_factory = sqlite3.Row
            self._spools = Spools(self.folder / "payloads")
            self._spools.sweep({row["file"] for row in recall.stored_payloads(connection)})
            undo.pop_all()
        self._writer = Writer(connection, path)
        self._files = ThreadPoolExecutor(SYNCING, thread_name_prefix="cuzk journal files")

    def spool(self, expected: int = 0) -> Spool:
        """A file for a message of about ``expected`` bytes; EngineError, with both numbers, where there is no room.
        Its ``discard`` is to be called in any case: it leaves what a job was accepted with."""
        return self._spools.new(expected)

    async def accept(self, job: Job) -> None:
        """A new job, or a new try of one that failed or was cancelled. EngineError for one that lives or is done."""
        rows = records.accepted(job, [self._stored(part) for part in job.request.payload])
        if not rows.files:
            await self._written(self._submit(rows))
            return
        self._spools.keep(rows.files)
        try:
            future = self._files.submit(self._accept_files, rows)
        except RuntimeError:
            self._spools.give_back(rows.files)
            raise Unavailable(f"{self.folder}: the journal is closed") from None
        await self._written(future)

    async def part(self, job_id: str, number: int, part: PartProof) -> None:
        """A partition is proved. EngineError for a job that does not live."""
        await self._written(
            self._writer.submit(lambda c: records.insert_part(c, job_id, number, part))
        )

    async def mark(self, job: Job) -> None:
        """A job's state, start and losses as they are now. EngineError for a job that does not live."""
        state, started, losses = job.state, job.started, job.losses
        await self._written(
            self._writer.submit(lambda c: records.update_job(c, job.id, state, started, losses))
        )

    async def end(
        self,
        job_id: str,
        outcome: Outcome,
        *,
        started: float | None = None,
        ended: float | None = None,
    ) -> None:
        """A job has ended, now or at ``ended``; its payload is deleted. EngineError for a job that does not live."""
        await self._written(self._end(job_id, outcome, started, ended))

    def recover(self) -> Recovered:
        """Unfinished jobs, queued, with their proved partitions. One whose payload's file is not there any more has
        failed now. Before the first ``accept``; blocks."""
        for row in self._read(recall.stored_payloads):
            fault = self._spools.lost(row["file"], row["end"])
            if fault:
                message = f"{self._spools.folder / row['file']}: the request's payload {fault}; submit it again"
                outcome = Outcome(State.FAILED, code=EngineError.code, message=message)
                self._end(row["id"], outcome, None, None).result()
        jobs = self._read(lambda c: recall.unfinished(c, self._spools.folder))
        return Recovered(jobs, self._read(recall.next_number))

    def outcome(self, job_id: str) -> tuple[bytes, JobView, Outcome] | None:
        """The request's digest, how the job went and how it ended; None where it lives, or is not known."""
        return self._read(lambda c: recall.ended_job(c, job_id))

    def recent(self, count: int) -> list[JobView]:
        """Ended jobs, the last first."""
        return self._read(lambda c: recall.ended_views(c, count))

    def expire(self, before: float) -> int:
        """Forget jobs that ended earlier, with their proofs: how many. Blocks until that is on the disk (10,000 jobs:
        0.2 to 0.5 s), so on an event loop in a thread; other calls are served in between."""
        total = 0
        while True:
            count = self._writer.submit(lambda c: records.expire_jobs(c, before)).result()
            total += count
            if count < records.EXPIRED_AT_ONCE:
                return total

    def nbytes(self) -> int:
        """Of all files."""
        total = 0
        for folder in (self.folder, self._spools.folder):
            with os.scandir(folder) as entries:
                for entry in entries:
                    with suppress(FileNotFoundError):  # a job has ended
                        total += entry.stat().st_size if entry.is_file() else 0
        return total

    def close(self) -> None:
        """Write what waits, and give the folder up. Again: nothing. Later calls: Unavailable."""
        with self._closing:
            if self._closed:
                return
            self._closed = True
            self._files.shutdown()
            with self._reading:
                self._reader.close()
            self._writer.close()
            self._spools.close()
            self._owner.release()

    def _stored(self, payload: Payload) -> records.StoredPayload:
        if payload.path is None:
            return records.StoredPayload(payload.data or b"", None, 0, payload.size)
        name = self._spools.name(payload.path)
        return records.StoredPayload(None, name, payload.offset, payload.size)

    def _submit(self, rows: records.Accepted) -> Future[None]:
        return self._writer.submit(lambda c: records.insert_job(c, rows), nbytes=rows.nbytes)

    def _accept_files(self, rows: records.Accepted) -> None:
        """In a thread: other jobs do not wait for these files to be on the disk."""
        try:
            self._spools.sync(rows.files)
            self._submit(rows).result()
        except BaseException:
            self._spools.give_back(rows.files)
            raise
        self._spools.accepted(rows.files)

    def _end(
        self, job_id: str, outcome: Outcome, started: float | None, ended: float | None
    ) -> Future[list[str]]:
        if not outcome.state.ended:
            raise EngineError(f"{job_id}: ended, while it is {outcome.state.value}")
        time_ended = self._clock() if ended is None else ended
        return self._writer.submit(
            lambda c: records.end_job(c, job_id, outcome, started, time_ended), self._unlink
        )

    def _unlink(self, names: list[str]) -> None:
        for name in names:
            self._spools.drop(self._spools.folder / name)

    async def _written(self, future: Future[T]) -> T:
        return await asyncio.shield(asyncio.wrap_future(future))

    def _read(self, query: Callable[[sqlite3.Connection], T]) -> T:
        """At one moment, without waiting for what is written."""
        with self._reading:
            if self._closed:
                raise Unavailable(f"{self.folder}: the journal is closed")
            try:
                self._reader.execute("BEGIN")
                try:
                    return query(self._reader)
                finally:
                    self._reader.execute("COMMIT")
            except sqlite3.Error as error:
                raise EngineError(
                    f"{self.folder / 'journal.sqlite'}: cannot be read: {error}"
                ) from None


def prepare_folder(folder: Path) -> None:
    """Make it, 0700; FormatError for one that others own or can enter."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.stat()
    except OSError as error:
        raise EngineError(
            f"{folder}: cannot be made: {error.strerror}; give the daemon another state folder"
        ) from None
    if status.st_uid != os.geteuid():
        raise FormatError(
            f"{folder}: belongs to user {status.st_uid}, expected {os.geteuid()}: "
            f"run the daemon as that user, or chown {os.geteuid()} {folder}"
        )
    if status.st_mode & 0o077:
        raise FormatError(
            f"{folder}: mode {status.st_mode & 0o777:04o}, expected 0700, for witnesses are in it: chmod 700 {folder}"
        )
