"""The journal's folder: its owner's alone, one daemon's; damage is told and left as it is."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import stat
from pathlib import Path

import pytest
from journal_jobs import MARK, contents, make_job, wait_until
from journal_jobs import folder as folder
from journal_jobs import journal as journal

from cuzk.engine.journal import Journal
from cuzk.engine.request import Payload
from cuzk.errors import EngineError, FormatError, Unavailable


def test_only_its_owner_can_read_the_folder(folder: Path) -> None:
    mask = os.umask(0)
    try:
        with_spool = Journal(folder)
        asyncio.run(with_spool.accept(make_job(1, Payload.of(MARK))))
        with_spool.spool().write(b"x")
        modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in [folder, *folder.rglob("*")]}
    finally:
        os.umask(mask)
    with_spool.close()
    folders = {modes.pop("state"), modes.pop("payloads")}
    assert folders == {0o700}
    assert {"journal.sqlite", "journal.sqlite-wal", "owner"} < set(modes)
    assert set(modes.values()) == {0o600}


def test_a_folder_that_others_can_enter_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o750)
    with pytest.raises(FormatError, match=r"mode 0750, expected 0700.*chmod 700") as caught:
        Journal(tmp_path)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_of_somebody_else_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o700)
    mine = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: 4242)
    with pytest.raises(FormatError, match=f"belongs to user {mine}, expected 4242"):
        Journal(tmp_path)


def test_a_place_where_no_folder_can_be_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(EngineError, match="file/state: cannot be made: Not a directory"):
        Journal(tmp_path / "file" / "state")


def test_a_second_daemon_hears_who_has_it(journal: Journal, folder: Path) -> None:
    with pytest.raises(Unavailable, match=f"in use by process {os.getpid()}:"):
        Journal(folder)
    journal.close()
    Journal(folder).close()


def damage(path: Path, how: str) -> None:
    data = path.read_bytes()
    match how:
        case "no SQLite":
            path.write_bytes(b"hello\n" * 3000)
        case "empty":
            path.write_bytes(b"")
        case "first bytes":
            path.write_bytes(data[:50])
        case "half":
            path.write_bytes(data[: len(data) // 2])
        case "one page":
            path.write_bytes(data[:4096] + b"\x55" * 4096 + data[8192:])
        case "gone, log left":
            path.with_name(path.name + "-wal").write_bytes(b"log")
            path.unlink()
        case "of another program" | "newer":
            with_version = sqlite3.connect(path)
            pragma = "user_version=99" if how == "newer" else "application_id=7"
            with_version.execute(f"PRAGMA {pragma}")
            with_version.commit()
            with_version.close()


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ("no SQLite", "is damaged"),
        ("empty", "is not a journal of cuzk"),
        ("first bytes", "is not a journal of cuzk"),
        ("half", "is damaged"),
        ("one page", "is damaged"),
        ("gone, log left", "is not there, but journal.sqlite-wal is"),
        ("of another program", "is not a journal of cuzk"),
        ("newer", "schema 99, this cuzk knows up to 2"),
    ],
)
def test_a_damaged_database_is_told_and_left_as_it_is(folder: Path, how: str, says: str) -> None:
    first = Journal(folder)
    asyncio.run(first.accept(make_job(1, Payload.of(MARK * 500))))
    first.close()
    path = folder / "journal.sqlite"
    whole = path.read_bytes()
    damage(path, how)
    before = contents(folder)
    with pytest.raises(FormatError, match=says) as caught:
        Journal(folder)
    assert str(path) in str(caught.value)
    assert f"move {folder} away" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert {n: d for n, d in contents(folder).items() if d and not n.endswith("-shm")} == {
        n: d for n, d in before.items() if d
    }
    (folder / "journal.sqlite-wal").unlink(missing_ok=True)
    path.write_bytes(whole)  # a copy brought back
    again = Journal(folder)
    assert [job.id for job in again.recover().jobs] == ["job-1"]
    again.close()


def test_damage_is_left_as_it_is_with_the_log_of_a_killed_daemon(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = Journal(folder)
    asyncio.run(first.accept(make_job(1, Payload.of(MARK * 500))))
    wait_until(lambda: (folder / "journal.sqlite-wal").stat().st_size == 0)
    for pause in ("IDLE_SECONDS", "LOG_SECONDS"):
        monkeypatch.setattr(f"cuzk.engine.writer.{pause}", 1000.0)  # and the log stays as it is
    asyncio.run(first.accept(make_job(2)))
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)  # as kill -9 leaves it
    first.close()
    copy.chmod(0o700)
    assert (copy / "journal.sqlite-wal").stat().st_size > 0
    data = (copy / "journal.sqlite").read_bytes()
    (copy / "journal.sqlite").write_bytes(data[: len(data) - 3 * 4096])
    before = contents(copy)
    with pytest.raises(FormatError, match="is damaged"):
        Journal(copy)
    after = contents(copy)
    assert after["journal.sqlite"] == before["journal.sqlite"]
    assert after["journal.sqlite-wal"] == before["journal.sqlite-wal"]
