"""Files of requests' large parts: written as they come, nobody's when nobody has them."""

from __future__ import annotations

import asyncio
import os
import resource
import stat
import threading
from pathlib import Path

import pytest
from journal_jobs import SOON, held, make_job

from cuzk.engine.job import Outcome, State
from cuzk.engine.journal import Journal
from cuzk.engine.request import Payload
from cuzk.engine.spool import RESERVE_BYTES, Spool, Spools
from cuzk.errors import EngineError, Unavailable


@pytest.fixture
def spools(tmp_path: Path) -> Spools:
    return Spools(tmp_path / "payloads")


def test_a_payload_is_a_range_of_what_was_written(spools: Spools) -> None:
    spool = spools.new()
    data = os.urandom(300_000)
    spool.write(data[:100_000])
    spool.write(bytearray(data[100_000:100_001]))
    spool.write(b"")
    spool.write(memoryview(data)[100_001:])
    assert spool.size == 300_000
    first, second = spool.payload(0, 123_456), spool.payload(123_456, 176_544)
    assert bytes(first.view()) == data[:123_456]
    assert bytes(second.view()) == data[123_456:]
    assert spool.path.read_bytes() == data
    assert stat.S_IMODE(spool.path.stat().st_mode) == 0o600


def test_wide_items_are_written_as_bytes(spools: Spools) -> None:
    spool = spools.new()
    spool.write(memoryview(bytes(range(16))).cast("Q"))
    assert spool.path.read_bytes() == bytes(range(16))


@pytest.mark.parametrize(("offset", "size"), [(0, 11), (10, 1), (-1, 2), (3, -1)])
def test_a_range_that_is_not_there_is_refused(spools: Spools, offset: int, size: int) -> None:
    spool = spools.new()
    spool.write(b"0123456789")
    with pytest.raises(EngineError, match=f"{size} bytes from {offset} asked for, 10 written"):
        spool.payload(offset, size)


def test_discard_deletes_once(spools: Spools) -> None:
    spool = spools.new()
    spool.write(b"secret")
    spool.discard()
    assert list(spools.folder.iterdir()) == []
    spool.path.write_bytes(b"somebody else's")
    spool.discard()
    assert spool.path.exists()
    with pytest.raises(EngineError, match="written to after its request was accepted or dropped"):
        spool.write(b"more")


def test_a_message_that_has_no_room_is_refused_before_it_is_written(spools: Spools) -> None:
    free = spools.free()
    with pytest.raises(EngineError, match=r"needs \d+ bytes free.*there are \d+; make room"):
        spools.new(free)
    assert list(spools.folder.iterdir()) == []


def test_room_is_promised_once(spools: Spools, monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages that arrive at the same time do not count on the same bytes."""
    monkeypatch.setattr(Spools, "free", lambda _: 1000 + RESERVE_BYTES)
    first = spools.new(600)
    needed = 1001 + RESERVE_BYTES
    with pytest.raises(EngineError, match=f"of 401 bytes needs {needed} .* {needed - 1};"):
        spools.new(401)
    second = spools.new(400)
    second.discard()
    first.write(bytes(500))  # a real disk has 500 fewer now; this one does not
    assert spools.new(900).size == 0


def test_a_full_disk_while_a_message_arrives_is_an_error(spools: Spools) -> None:
    spool = spools.new()
    spool.write(bytes(1000))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1500, hard))
    try:
        with pytest.raises(EngineError, match=r"cannot write 500 bytes after 1500: File too large"):
            spool.write(bytes(1000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    spool.discard()
    assert list(spools.folder.iterdir()) == []


def test_a_file_belongs_to_the_job_that_was_accepted_with_it(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "state")
    spool = journal.spool()
    spool.write(b"payload")
    asyncio.run(journal.accept(make_job(1, spool.payload(0, 3), spool.payload(3, 4))))
    spool.discard()
    assert spool.path.read_bytes() == b"payload"
    with pytest.raises(EngineError, match="after its request was accepted"):
        spool.write(b"more")
    asyncio.run(journal.end("job-1", Outcome(State.CANCELLED)))
    assert not spool.path.exists()
    spool.discard()
    journal.close()


def test_a_file_of_a_refused_job_is_its_spools_again(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "state")

    async def work() -> None:
        await journal.accept(make_job(1))
        early, late = journal.spool(), journal.spool()
        early.write(b"1")
        late.write(b"2")
        with held(journal):
            task = asyncio.ensure_future(journal.accept(make_job(1, early.payload(0, 1))))
            await asyncio.sleep(0)
            early.discard()  # before it is known
            assert early.path.exists()
        for call in (task, journal.accept(make_job(1, late.payload(0, 1)))):
            with pytest.raises(EngineError, match="accepted again"):
                await call
        assert not early.path.exists()
        assert late.path.exists()
        late.discard()
        assert not late.path.exists()

    asyncio.run(work())
    journal.close()


def test_files_of_nobody_are_deleted_at_the_start(tmp_path: Path) -> None:
    first = Journal(tmp_path / "state")
    spool = first.spool()
    spool.write(b"payload")
    asyncio.run(first.accept(make_job(1, spool.payload(0, 7))))
    first.close()
    orphan = spool.path.with_name("0123456789abcdef")
    orphan.write_bytes(b"half a message")
    second = Journal(tmp_path / "state")
    assert not orphan.exists()
    assert bytes(second.recover().jobs[0].request.payload[0].view()) == b"payload"
    second.close()


def test_a_closed_journal_has_no_open_message(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "state")
    spool = journal.spool()
    spool.write(b"half a message")
    other = journal.spool()
    other.write(b"x")
    journal.close()
    assert list((tmp_path / "state" / "payloads").iterdir()) == []
    with pytest.raises(Unavailable, match="the journal is closed"):
        asyncio.run(journal.accept(make_job(1, Payload(path=other.path, size=1))))


def test_a_payload_that_cannot_be_kept_is_not_accepted(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "state")
    spool = journal.spool()
    spool.write(b"payload")
    spool.path.unlink()
    with pytest.raises(EngineError, match="cannot be kept: No such file"):
        asyncio.run(journal.accept(make_job(1, spool.payload(0, 7))))
    assert journal.recover().jobs == []
    journal.close()


def test_a_payload_that_comes_as_the_journal_closes_is_not_left(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "state")
    spool = journal.spool()
    spool.write(b"payload")
    journal._files.shutdown()
    with pytest.raises(Unavailable, match="the journal is closed"):
        asyncio.run(journal.accept(make_job(1, spool.payload(0, 7))))
    spool.discard()
    assert not spool.path.exists()
    journal.close()


def test_a_file_that_takes_long_to_delete_keeps_nobody_from_a_new_one(
    spools: Spools, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The event loop makes spools, threads discard them."""
    begun, go_on = threading.Event(), threading.Event()

    def slow(_: Path, *, missing_ok: bool) -> None:
        assert missing_ok
        begun.set()
        assert go_on.wait(SOON)

    old = spools.new()
    monkeypatch.setattr(Path, "unlink", slow)
    thread = threading.Thread(target=old.discard)
    thread.start()
    assert begun.wait(SOON)
    made: list[Spool] = []
    maker = threading.Thread(target=lambda: made.append(spools.new()))
    maker.start()
    maker.join(SOON)
    go_on.set()
    thread.join()
    maker.join()
    assert made


def test_a_digest_is_of_the_bytes_wherever_they_are(spools: Spools) -> None:
    data = os.urandom(3_000_001)  # read in pieces
    spool = spools.new()
    spool.write(b"before" + data + b"after")
    in_file = make_job(1, spool.payload(6, len(data)), spool.payload(0, 0)).request
    in_memory = make_job(1, Payload.of(data), Payload.of(b"")).request
    assert in_file.digest() == in_memory.digest()
    assert in_file.digest() != make_job(1, spool.payload(5, len(data)), spool.payload(0, 0)).request.digest()  # fmt: skip
    os.truncate(spool.path, 1000)
    with pytest.raises(EngineError, match=f"of {len(data)} bytes are missing"):
        in_file.digest()
