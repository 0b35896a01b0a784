"""Rows of the journal as they are read: jobs to go on with, outcomes to repeat. Written by :mod:`records`.

Functions take a connection inside a transaction.
"""

from __future__ import annotations

import json
import sqlite3
from base64 import b64decode
from collections.abc import Sequence
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path

from cuzk.engine.job import Job, Outcome, Partition, State
from cuzk.engine.request import Field, Payload, Priority, Request
from cuzk.engine.snapshot import JobView, PartitionView
from cuzk.errors import EngineError

Row = sqlite3.Row
DAMAGED = (
    "its stored proof is damaged, and was withheld: submit the request again; is the disk failing?"
)


def proof_digest(proof: bytes, public: bytes) -> bytes:
    """16 bytes of BLAKE2b: SQLite does not notice a bit that a disk turned over."""
    return blake2b(len(proof).to_bytes(8, "little") + proof + public, digest_size=16).digest()


def is_whole(outcome: Row) -> bool:
    """Whether proof and public signals are those that were stored, and so verified."""
    digest = outcome["proof_digest"]
    return digest is None or proof_digest(outcome["proof"], outcome["public"]) == digest


def read_fields(text: str) -> dict[str, Field]:
    """Of ``records.write_fields``."""
    return {
        name: b64decode(value["base64"]) if isinstance(value, dict) else value
        for name, value in json.loads(text).items()
    }


def unfinished(connection: sqlite3.Connection, payloads: Path) -> list[Job]:
    """Jobs that have not ended, in order of their numbers, queued again, with the partitions that are proved."""
    rows = connection.execute("SELECT * FROM jobs WHERE ended IS NULL ORDER BY number").fetchall()
    return [_job(connection, row, payloads) for row in rows]


def next_number(connection: sqlite3.Connection) -> int:
    """Higher than that of any job, forgotten ones too."""
    return int(connection.execute("SELECT next FROM counter").fetchone()[0])


def stored_payloads(connection: sqlite3.Connection) -> list[Row]:
    """Job id, file and the byte that it must reach to, of all payloads in files."""
    return connection.execute(
        "SELECT id, file, max(offset + size) AS end FROM payloads JOIN jobs ON jobs.number = payloads.job"
        " WHERE file IS NOT NULL GROUP BY jobs.number, file ORDER BY jobs.number"
    ).fetchall()


def ended_job(connection: sqlite3.Connection, job_id: str) -> tuple[bytes, JobView, Outcome] | None:
    """Digest, view and outcome; None where none of this id has ended. A proof that is not what was stored is none: such a
    job has failed, and may be submitted again."""
    row = connection.execute(
        "SELECT * FROM jobs JOIN outcomes ON outcomes.job = jobs.number WHERE id = ?", (job_id,)
    ).fetchone()
    if row is None:
        return None
    parts = connection.execute(
        "SELECT * FROM parts WHERE job = ? ORDER BY number", (row["number"],)
    ).fetchall()
    view = _view(row, parts)
    if not is_whole(row):
        view = replace(view, state=State.FAILED.value, code=EngineError.code, message=DAMAGED)
        return row["digest"], view, Outcome(State.FAILED, code=EngineError.code, message=DAMAGED)
    outcome = Outcome(
        State(row["state"]), row["proof"], row["public"], row["code"], row["message"], json.loads(row["milliseconds"])
    )  # fmt: skip
    return row["digest"], view, outcome


def ended_views(connection: sqlite3.Connection, count: int) -> list[JobView]:
    """The last that ended, the last first."""
    last = (
        "SELECT number FROM jobs WHERE ended IS NOT NULL ORDER BY ended DESC, number DESC LIMIT ?"
    )
    parts: dict[int, list[Row]] = {}
    for row in connection.execute(
        f"SELECT * FROM parts WHERE job IN ({last}) ORDER BY job, number", (count,)
    ):
        parts.setdefault(row["job"], []).append(row)
    rows = connection.execute(
        "SELECT jobs.*, code, message, milliseconds FROM jobs JOIN outcomes ON outcomes.job = jobs.number"
        f" WHERE jobs.number IN ({last}) ORDER BY ended DESC, number DESC",
        (count,),
    ).fetchall()
    return [_view(row, parts.get(row["number"], [])) for row in rows]


def _job(connection: sqlite3.Connection, row: Row, payloads: Path) -> Job:
    stored = connection.execute(
        "SELECT * FROM payloads WHERE job = ? ORDER BY place", (row["number"],)
    ).fetchall()
    request = Request(
        id=row["id"],
        kind=row["kind"],
        priority=Priority(row["priority"]),
        fields=read_fields(row["fields"]),
        payload=tuple(
            Payload.of(part["data"])
            if part["file"] is None
            else Payload(path=payloads / part["file"], offset=part["offset"], size=part["size"])
            for part in stored
        ),
        deadline=row["deadline"],
        client=row["client"],
        named=bool(row["named"]),
    )
    partitions = [Partition(number) for number in range(row["partitions"])]
    for part in connection.execute("SELECT * FROM parts WHERE job = ?", (row["number"],)):
        partitions[part["number"]] = Partition(
            part["number"], part["worker"], part["started"], part["ended"], part["proof"],
            json.loads(part["milliseconds"]), part["public"],
        )  # fmt: skip
    return Job(
        request, row["number"], row["digest"], row["circuit"], partitions, row["accepted"],
        started=row["started"], losses=row["losses"],
    )  # fmt: skip


def _view(row: Row, parts: Sequence[Row]) -> JobView:
    return JobView(
        id=row["id"],
        number=row["number"],
        kind=row["kind"],
        circuit=row["circuit"],
        priority=Priority(row["priority"]).name.lower(),
        state=row["state"],
        accepted=row["accepted"],
        started=row["started"],
        ended=row["ended"],
        age=row["ended"] - row["accepted"],
        payload_bytes=row["payload_bytes"],
        deadline=row["deadline"] or 0.0,
        client=row["client"],
        partitions=tuple(_partition_view(row["partitions"], parts)),
        code=row["code"],
        message=row["message"],
        milliseconds=json.loads(row["milliseconds"]),
    )


def _partition_view(count: int, parts: Sequence[Row]) -> list[PartitionView]:
    """All of a job: those without a row were not proved when it ended."""
    views = [PartitionView(number, "pending") for number in range(count)]
    for part in parts:
        views[part["number"]] = PartitionView(
            part["number"], "done", part["worker"], part["started"], part["ended"], json.loads(part["milliseconds"])
        )  # fmt: skip
    return views
