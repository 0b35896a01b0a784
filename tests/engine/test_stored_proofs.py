"""Proofs that the journal keeps: what a disk changed is not given away; journals of an older schema."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest
from journal_jobs import make_job

from cuzk.engine.database import MIGRATIONS
from cuzk.engine.job import Job, Outcome, State
from cuzk.engine.journal import Journal
from cuzk.engine.recall import proof_digest
from cuzk.engine.request import Payload

DONE = Outcome(State.DONE, b"the proof", b"[35]")


def job(number: int) -> Job:
    return make_job(number, Payload.of(b"witness"), job_id="order-17")


def made(folder: Path) -> Path:
    """A journal with one proof."""
    journal = Journal(folder)

    async def work() -> None:
        await journal.accept(job(1))
        await journal.end("order-17", DONE)

    asyncio.run(work())
    journal.close()
    return folder / "journal.sqlite"


@pytest.mark.parametrize("column", ["proof", "public"])
def test_a_bit_that_turned_over_is_noticed(tmp_path: Path, column: str) -> None:
    """No proof is given away that was not verified: it is withheld, and its request may come again."""
    path = made(tmp_path / "state")
    data = path.read_bytes()
    stored = getattr(DONE, column)
    assert data.count(stored) == 1
    at = data.index(stored)
    path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
    journal = Journal(tmp_path / "state")
    found = journal.outcome("order-17")
    assert found is not None
    _, view, outcome = found
    assert (outcome.state, outcome.proof, outcome.public) == (State.FAILED, b"", b"")
    assert (view.state, view.message) == ("failed", outcome.message)
    assert "damaged" in outcome.message

    async def again() -> None:
        await journal.accept(job(2))
        await journal.end("order-17", DONE)

    asyncio.run(again())
    found = journal.outcome("order-17")
    assert found is not None
    assert found[2] == DONE
    journal.close()


def test_a_journal_of_the_first_schema(tmp_path: Path) -> None:
    """Its proofs have no digest, and are still there."""
    path = made(tmp_path / "state")
    connection = sqlite3.connect(path)
    connection.execute("ALTER TABLE outcomes DROP COLUMN proof_digest")
    connection.execute("PRAGMA user_version=1")
    connection.commit()
    connection.close()
    journal = Journal(tmp_path / "state")
    found = journal.outcome("order-17")
    journal.close()
    assert found is not None
    assert found[2] == DONE
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA user_version").fetchone()[0] == len(MIGRATIONS)
    connection.close()


def test_a_proofs_digest_says_where_its_signals_begin() -> None:
    assert proof_digest(b"ab", b"c") != proof_digest(b"a", b"bc")
