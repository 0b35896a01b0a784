"""Journals of tests, jobs for them, what lies in their folders, and their writer as a test wants it."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cuzk.engine.catalogue import PartProof
from cuzk.engine.job import Job, Outcome, Partition, State
from cuzk.engine.journal import Journal
from cuzk.engine.request import Payload, Priority, Request

SOON = 60.0  # seconds: no bound on speed, an end for a test that would hang
DONE = Outcome(State.DONE, proof=b"proof" * 40, public=b'["7"]', milliseconds={"prove": 12.5})
MARK = b"witness-that-must-not-stay-" + bytes(range(64))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "a" / "state"


@pytest.fixture
def journal(folder: Path) -> Iterator[Journal]:
    made = Journal(folder)
    yield made
    made.close()


def make_job(
    number: int, *payload: Payload, job_id: str = "", partitions: int = 1, accepted: float = 1000.0
) -> Job:
    request = Request(
        id=job_id or f"job-{number}",
        kind="circuit",
        priority=Priority.HIGH,
        fields={"circuit_id": "c", "sector": 2**60, "comm_r": b"\x00\xff\n"},
        payload=payload,
        deadline=2000.25,
        client="unix:1",
        named=False,
    )
    parts = [Partition(i) for i in range(partitions)]
    return Job(request, number, bytes([number % 256]) * 32, "c", parts, accepted)


def part_proof(text: str) -> PartProof:
    spans = (("host", "prove", 10.0, 11.5), ("host", "verify", 11.5, 12.0))
    return PartProof(text.encode(), {"prove": 1.5}, "cpu", spans, b"public " + text.encode())


@contextmanager
def held(journal: Journal) -> Iterator[None]:
    """Its writer is in the middle of a transaction: calls gather in their order behind it."""
    there, go_on = threading.Event(), threading.Event()

    def hold(_: sqlite3.Connection) -> bool:
        there.set()
        return go_on.wait(SOON)

    holding = journal._writer.submit(hold)
    try:
        assert there.wait(SOON)
        yield
    finally:
        go_on.set()
    assert holding.result(SOON), "it was held longer than it waits"


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + SOON
    while not condition():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.01)


def places(folder: Path, marker: bytes) -> list[str]:
    """Files of the folder that hold it."""
    found = []
    for path in folder.rglob("*"):
        try:
            if path.is_file() and marker in path.read_bytes():
                found.append(path.name)
        except FileNotFoundError:
            continue
    return sorted(found)


def contents(folder: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in folder.rglob("*") if p.is_file() and p.name != "owner"}
