"""The journal's SQLite file: made, checked, brought to this version; a damaged one is told and left as it is.

    application_id  "cuzk"          user_version  number of MIGRATIONS that were made

    jobs      one row a request; ended is NULL as long as it lives
    parts     verified partitions' proofs; when the job has ended, only their times
    payloads  place -> bytes (a BLOB), or a range of a file of payloads/; deleted when the job ends
    outcomes  one row an ended job; proof_digest is NULL where schema 1 wrote it
    counter   the next job's number: numbers of forgotten jobs do not come back

No foreign keys and no savepoints: with either, SQLite writes deleted pages to a temporary file.
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from urllib.parse import quote

from cuzk.errors import EngineError, FormatError

APPLICATION = int.from_bytes(b"cuzk", "big")
BUSY_MS = 5000  # somebody looks into the file with another program
MIGRATIONS = (
    """
    CREATE TABLE jobs (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, digest BLOB NOT NULL,
        kind TEXT NOT NULL, priority INTEGER NOT NULL, fields TEXT NOT NULL, deadline REAL,
        client TEXT NOT NULL, named INTEGER NOT NULL, payload_bytes INTEGER NOT NULL, circuit TEXT NOT NULL,
        partitions INTEGER NOT NULL, accepted REAL NOT NULL, started REAL NOT NULL, ended REAL,
        state TEXT NOT NULL, losses INTEGER NOT NULL);
    CREATE INDEX jobs_ended ON jobs (ended);
    CREATE TABLE parts (job INTEGER NOT NULL, number INTEGER NOT NULL, worker TEXT NOT NULL,
        started REAL NOT NULL, ended REAL NOT NULL, milliseconds TEXT NOT NULL, proof BLOB NOT NULL,
        public BLOB NOT NULL, PRIMARY KEY (job, number)) WITHOUT ROWID;
    CREATE TABLE payloads (job INTEGER NOT NULL, place INTEGER NOT NULL, data BLOB, file TEXT,
        offset INTEGER NOT NULL, size INTEGER NOT NULL, PRIMARY KEY (job, place));
    CREATE TABLE outcomes (job INTEGER PRIMARY KEY, proof BLOB NOT NULL, public BLOB NOT NULL,
        code TEXT NOT NULL, message TEXT NOT NULL, milliseconds TEXT NOT NULL);
    CREATE TABLE counter (next INTEGER NOT NULL);
    INSERT INTO counter VALUES (1);
    """,
    "ALTER TABLE outcomes ADD COLUMN proof_digest BLOB",
)


def open_database(path: Path) -> sqlite3.Connection:
    """A connection that writes, to a file that was checked. FormatError where it is damaged, newer or another's,
    EngineError where the disk does not let it be opened."""
    try:
        if not path.exists():
            _make(path)
        _check(path)
        connection = connect(path)
        try:
            _migrate(connection, path)
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        except BaseException:
            connection.close()
            raise
        return connection
    except sqlite3.OperationalError as error:
        raise EngineError(
            f"{path}: cannot be opened: {error}; is its disk writable, and is there room?"
        ) from None
    except sqlite3.DatabaseError as error:
        raise _damaged(path, f"is damaged ({error})") from None
    except OSError as error:
        raise EngineError(f"{path}: cannot be opened: {error.strerror}") from None


def connect(path: Path) -> sqlite3.Connection:
    """To be used by any one thread at a time; transactions are begun and ended by who calls."""
    connection = sqlite3.connect(
        path, timeout=BUSY_MS / 1000, isolation_level=None, check_same_thread=False
    )
    for pragma in (
        "journal_mode=WAL",
        "synchronous=FULL",  # a commit is on the disk when it returns
        "secure_delete=ON",  # a deleted payload is overwritten
        "temp_store=MEMORY",
        "wal_autocheckpoint=0",  # the writer chooses when
    ):
        connection.execute(f"PRAGMA {pragma}").fetchall()
    return connection


def _make(path: Path) -> None:
    """Under another name until it is whole: an empty file is damage, not a beginning."""
    for suffix in ("-wal", "-journal"):
        other = path.with_name(path.name + suffix)
        if other.exists():
            raise _damaged(path, f"is not there, but {other.name} is")
    draft = path.with_name(path.name + ".new")
    draft.unlink(missing_ok=True)
    os.close(os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    connection = sqlite3.connect(draft, isolation_level=None)
    try:
        # 4096: with 16384, 1.1 to 1.5 times as many 131 KB payloads a second, and four times the bytes of a small job
        connection.execute("PRAGMA page_size=4096")
        connection.execute("PRAGMA auto_vacuum=INCREMENTAL")  # before the first table
        connection.execute(f"PRAGMA application_id={APPLICATION}")
        _migrate(connection, draft)
    finally:
        connection.close()
    draft.replace(path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _check(path: Path) -> None:
    """Through a connection that cannot write."""
    connection = sqlite3.connect(
        f"file:{quote(str(path))}?mode=ro", uri=True, timeout=BUSY_MS / 1000
    )
    try:
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if application != APPLICATION or version < 1:
            raise _damaged(path, "is not a journal of cuzk")
        if version > len(MIGRATIONS):
            raise FormatError(
                f"{path}: schema {version}, this cuzk knows up to {len(MIGRATIONS)}: it is of a newer one; "
                f"use that one, or move {path.parent} away"
            )
        answer = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if answer != "ok":
            raise _damaged(path, f"is damaged ({' '.join(str(answer).split())})")
    finally:
        connection.close()


def _migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Each step whole or not at all."""
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    for number, statements in enumerate(MIGRATIONS[version:], version + 1):
        try:
            connection.executescript(
                f"BEGIN IMMEDIATE; {statements}; PRAGMA user_version={number}; COMMIT;"
            )
        except sqlite3.IntegrityError as error:
            raise _damaged(path, f"cannot be brought to schema {number} ({error})") from None


def _damaged(path: Path, how: str) -> FormatError:
    return FormatError(
        f"{path}: {how}; nothing was changed: move {path.parent} away, or bring back a copy of it"
    )
