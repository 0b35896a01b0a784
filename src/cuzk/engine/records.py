"""Rows of the journal as they are written: every statement of SQL that changes one.

Functions take a connection inside a transaction, and may run twice (the first time rolled back). A request's fields are
JSON: {"name": 1, "other": "text", "third": {"base64": "AAEC"}}.
"""

from __future__ import annotations

import json
import sqlite3
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cuzk.engine.catalogue import PartProof
from cuzk.engine.job import Job, Outcome, State
from cuzk.engine.recall import is_whole, proof_digest
from cuzk.engine.request import Field
from cuzk.errors import EngineError

Row = sqlite3.Row
EXPIRED_AT_ONCE = 500


@dataclass(frozen=True)
class StoredPayload:
    """One payload: ``data``, or ``size`` bytes from ``offset`` of ``file``."""

    data: bytes | None
    file: str | None
    offset: int
    size: int


@dataclass(frozen=True)
class Accepted:
    """A job's rows, made when it is accepted: what becomes of the job meanwhile does not matter."""

    job: tuple[Any, ...]
    parts: tuple[tuple[Any, ...], ...]
    payloads: tuple[StoredPayload, ...]

    @property
    def number(self) -> int:
        """The job's."""
        return int(self.job[0])

    @property
    def files(self) -> frozenset[str]:
        """That hold its payload."""
        return frozenset(payload.file for payload in self.payloads if payload.file is not None)

    @property
    def nbytes(self) -> int:
        """Of the payload, in the database."""
        return sum(payload.size for payload in self.payloads if payload.file is None)


def write_fields(fields: Mapping[str, Field]) -> str:
    """As JSON; TypeError for a value that is no Field."""
    return json.dumps(
        {
            name: {"base64": b64encode(value).decode()} if isinstance(value, bytes) else value
            for name, value in fields.items()
        },
        sort_keys=True,
    )


def accepted(job: Job, payloads: Sequence[StoredPayload]) -> Accepted:
    """EngineError for a job that nobody can accept."""
    if job.state.ended:
        raise EngineError(f"{job.id}: a job that is {job.state.value} cannot be accepted")
    if [part.number for part in job.partitions] != list(range(len(job.partitions))):
        raise EngineError(f"{job.id}: its partitions are not numbered from 0")
    request = job.request
    row = (
        job.number, request.id, job.digest, request.kind, int(request.priority), write_fields(request.fields),
        request.deadline, request.client, int(request.named), request.nbytes, job.circuit, len(job.partitions),
        job.accepted, job.started, job.state.value, job.losses,
    )  # fmt: skip
    parts = tuple(
        (job.number, p.number, p.worker, p.started, p.ended, json.dumps(p.milliseconds), p.proof, p.public)
        for p in job.partitions
        if p.proof is not None
    )  # fmt: skip
    return Accepted(row, parts, tuple(payloads))


def insert_job(connection: sqlite3.Connection, rows: Accepted) -> None:
    """In the place of a failed or cancelled one of its id, or of one whose stored proof is damaged; EngineError where
    that lives or is done."""
    older = _find(connection, rows.job[1])
    if older is not None:
        done = older["state"] == State.DONE.value and is_whole(
            _outcome(connection, older["number"])
        )
        if older["ended"] is None or done:
            raise EngineError(f"{rows.job[1]}: accepted again, while it is {older['state']}")
        _delete(connection, [older["number"]])
    taken = connection.execute("SELECT id FROM jobs WHERE number = ?", (rows.number,)).fetchone()
    if taken is not None:
        raise EngineError(f"{rows.job[1]}: its number {rows.number} is that of {taken['id']}")
    connection.execute(
        "INSERT INTO jobs (number, id, digest, kind, priority, fields, deadline, client, named, payload_bytes,"
        " circuit, partitions, accepted, started, state, losses) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
        rows.job,
    )
    connection.executemany("INSERT INTO parts VALUES (?,?,?,?,?,?,?,?)", rows.parts)
    connection.executemany(
        "INSERT INTO payloads VALUES (?,?,?,?,?,?)",
        [(rows.number, i, p.data, p.file, p.offset, p.size) for i, p in enumerate(rows.payloads)],
    )
    connection.execute("UPDATE counter SET next = max(next, ?)", (rows.number + 1,))


def insert_part(connection: sqlite3.Connection, job_id: str, number: int, part: PartProof) -> None:
    """Again: in the place of the first. EngineError for a job that does not live, or has no such partition."""
    job = _alive(connection, job_id)
    if not 0 <= number < job["partitions"]:
        raise EngineError(f"{job_id}: partition {number} of {job['partitions']}")
    times = [time for span in part.spans for time in span[2:]] or [0.0]
    connection.execute(
        "INSERT OR REPLACE INTO parts VALUES (?,?,?,?,?,?,?,?)",
        (job["number"], number, part.device, min(times), max(times), json.dumps(part.milliseconds),
         part.proof, part.public),
    )  # fmt: skip


def update_job(
    connection: sqlite3.Connection, job_id: str, state: State, started: float, losses: int
) -> None:
    """What is known of a job that lives; EngineError for another."""
    connection.execute(
        "UPDATE jobs SET state = ?, started = ?, losses = ? WHERE number = ?",
        (state.value, started, losses, _alive(connection, job_id)["number"]),
    )


def end_job(
    connection: sqlite3.Connection,
    job_id: str,
    outcome: Outcome,
    started: float | None,
    ended: float,
) -> list[str]:
    """The outcome is kept, partitions' proofs and the payload are not: the payload's files, to be unlinked.
    EngineError for a job that does not live."""
    number = _alive(connection, job_id)["number"]
    connection.execute(
        "UPDATE jobs SET state = ?, started = coalesce(?, started), ended = ? WHERE number = ?",
        (outcome.state.value, started, ended, number),
    )
    connection.execute(
        "INSERT INTO outcomes VALUES (?,?,?,?,?,?,?)",
        (number, outcome.proof, outcome.public, outcome.code, outcome.message, json.dumps(outcome.milliseconds),
         proof_digest(outcome.proof, outcome.public)),
    )  # fmt: skip
    connection.execute("UPDATE parts SET proof = x'', public = x'' WHERE job = ?", (number,))
    files = connection.execute(
        "SELECT DISTINCT file FROM payloads WHERE job = ? AND file IS NOT NULL", (number,)
    ).fetchall()
    connection.execute("DELETE FROM payloads WHERE job = ?", (number,))
    return [row["file"] for row in files]


def expire_jobs(connection: sqlite3.Connection, before: float) -> int:
    """Forget some that ended earlier than that, EXPIRED_AT_ONCE at most: how many."""
    rows = connection.execute(
        "SELECT number FROM jobs WHERE ended < ? LIMIT ?", (before, EXPIRED_AT_ONCE)
    ).fetchall()
    _delete(connection, [row["number"] for row in rows])
    return len(rows)


def _find(connection: sqlite3.Connection, job_id: str) -> Row | None:
    row: Row | None = connection.execute(
        "SELECT number, state, ended, partitions FROM jobs WHERE id = ?", (job_id,)
    ).fetchone()
    return row


def _outcome(connection: sqlite3.Connection, number: int) -> Row:
    row: Row = connection.execute("SELECT * FROM outcomes WHERE job = ?", (number,)).fetchone()
    return row


def _alive(connection: sqlite3.Connection, job_id: str) -> Row:
    row = _find(connection, job_id)
    if row is None or row["ended"] is not None:
        state = "unknown" if row is None else row["state"]
        raise EngineError(f"{job_id}: written to, while it is {state}")
    return row


def _delete(connection: sqlite3.Connection, numbers: Sequence[int]) -> None:
    keys = [(number,) for number in numbers]
    for table, column in (("parts", "job"), ("outcomes", "job"), ("jobs", "number")):
        connection.executemany(f"DELETE FROM {table} WHERE {column} = ?", keys)
