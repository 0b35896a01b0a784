"""The one thread that writes to the journal: whatever waits becomes one transaction (group commit).

    calls --> [ BEGIN  a b c ...  COMMIT ] --> every caller hears of it

A call that cannot be done fails alone: the transaction is given up, and each of its calls gets one of its own. A commit
that fails (a full disk) fails the calls in it. Between transactions, and best when nothing waits, the log is
written back and cut to nothing, with what was deleted in it, and the file gives back what it has not needed.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from cuzk.engine.database import BUSY_MS
from cuzk.errors import CuzkError, EngineError, Unavailable

T = TypeVar("T")
GROUP_CALLS = 256
GROUP_BYTES = 8 << 20
LOG_BYTES = 8 << 20  # written back at this size at the latest: while it is, calls wait
LOG_SECONDS = 10.0  # and at this age
IDLE_SECONDS = 0.2
SPARE_PAGES = 1024  # free pages that the file keeps: 4 MiB
STEP_PAGES = 512  # given back at a time: 5 ms


@dataclass
class Call:
    """Something to write. ``work`` may run again, in another transaction; ``after`` follows the commit."""

    work: Callable[[sqlite3.Connection], Any]
    after: Callable[[Any], None] | None
    nbytes: int
    future: Future[Any] = field(default_factory=Future)
    answer: Any = None
    error: Exception | None = None


class Writer:
    """Owns a connection, and closes it."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self._path = path
        self._log = path.with_name(path.name + "-wal")
        self._queue: SimpleQueue[Call | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._closed = False
        self._stopping = False
        self._log_since: float | None = None  # the first commit that is in the log
        self._untidy = False
        self._thread = threading.Thread(target=self._run, name="cuzk journal", daemon=True)
        self._thread.start()

    def submit(
        self,
        work: Callable[[sqlite3.Connection], T],
        after: Callable[[T], None] | None = None,
        nbytes: int = 0,
    ) -> Future[T]:
        """Do it in the next transaction; the future has its answer when that is committed. In order of the calls."""
        call = Call(work, after, nbytes)
        with self._lock:
            if self._closed:
                raise Unavailable(f"{self._path}: the journal is closed")
            self._queue.put(call)
        return call.future

    def close(self) -> None:
        """Write what waits, write the log back, end the thread. Again: nothing."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping:
            group = self._next()
            if group:
                self._commit(group)
                self._answer(group)
            try:
                self._tidy(idle=not group)
            except (sqlite3.Error, OSError):  # a full disk: the next time
                self._log_since = time.monotonic()
        try:
            self._checkpoint()
        except sqlite3.Error:
            self._stopping = True  # the log stays, and the next start reads it
        self._connection.close()

    def _next(self) -> list[Call]:
        """All that waits, up to a limit; nothing where it is time to tidy up or to stop."""
        group: list[Call] = []
        nbytes = 0
        try:
            call = self._queue.get(timeout=IDLE_SECONDS if self._untidy else None)
            while call is not None:
                group.append(call)
                nbytes += call.nbytes
                if len(group) == GROUP_CALLS or nbytes >= GROUP_BYTES:
                    return group
                call = self._queue.get_nowait()
            self._stopping = True
        except Empty:
            pass
        return group

    def _commit(self, group: list[Call]) -> None:
        """One transaction for all, or where one of them cannot be done, one for each."""
        self._untidy = True
        if self._log_since is None:
            self._log_since = time.monotonic()
        if self._transaction(group) and len(group) > 1:
            for call in group:
                call.error = None
                self._transaction([call])

    def _transaction(self, group: list[Call]) -> bool:
        """Whether a call failed, and so nothing is written. Where the commit itself fails, every call has its error."""
        connection = self._connection
        try:
            connection.execute("BEGIN IMMEDIATE")
            for call in group:
                try:
                    call.answer = call.work(connection)
                except Exception as error:
                    call.error = self._typed(error)
                    connection.rollback()
                    return True
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            if connection.in_transaction:
                connection.rollback()
            for call in group:
                call.error = self._typed(error)
        return False

    def _typed(self, error: Exception) -> Exception:
        if isinstance(error, CuzkError):
            return error
        if isinstance(error, sqlite3.Error):
            return EngineError(
                f"{self._path}: cannot be written: {error}; is its disk writable, and is there room?"
            )
        return EngineError(f"{self._path}: not written: {type(error).__name__} ({error})")

    def _answer(self, group: list[Call]) -> None:
        """Those first that have nothing to do after it."""
        for call in sorted(group, key=lambda call: call.after is not None):
            if call.error is not None:
                call.future.set_exception(call.error)
                continue
            if call.after is not None:
                call.after(call.answer)
            call.future.set_result(call.answer)

    def _tidy(self, *, idle: bool) -> None:
        """Write the log back when it is long or old; when nothing waits, give back pages first."""
        if not idle:
            age = 0.0 if self._log_since is None else time.monotonic() - self._log_since
            if age > LOG_SECONDS or self._log.stat().st_size > LOG_BYTES:
                self._checkpoint()
            return
        spare = self._connection.execute("PRAGMA freelist_count").fetchone()[0] - SPARE_PAGES
        while spare > 0:
            step = min(spare, STEP_PAGES)
            # not execute: it stops after the first page
            self._connection.executescript(f"PRAGMA incremental_vacuum({step})")
            spare -= step
            if not self._queue.empty():
                return
        self._checkpoint()
        self._untidy = self._log_since is not None

    def _checkpoint(self) -> None:
        """The log's pages into the file, and the log to nothing; not now where somebody reads them."""
        connection = self._connection
        connection.execute("PRAGMA busy_timeout=0")
        try:
            busy = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        finally:
            connection.execute(f"PRAGMA busy_timeout={BUSY_MS}")
        self._log_since = time.monotonic() if busy else None
