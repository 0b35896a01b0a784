"""What a worker does, without a process: threads by kind of work, what is held and what is let go of."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from running_workers import SOON
from toy_catalogue import PREPARED, ToyCatalogue, ToyCircuit, proof_of, request_of
from toy_workshop import begun, error_of, prepared

from cuzk.engine.catalogue import PartProof
from cuzk.engine.request import Payload, Priority
from cuzk.engine.workshop import Workshop
from cuzk.errors import (
    Cancelled,
    CircuitError,
    CuzkError,
    EngineError,
    FormatError,
    InternalError,
    KernelError,
    OutOfMemory,
    UnsatisfiedError,
)


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Workshop]:
    loads = {
        "toy": "",
        "other": "",
        "slow": f"wait {tmp_path}/load",
        "broken": "raise FormatError bad key",
    }
    made = Workshop(
        ToyCatalogue(loads, closed=str(tmp_path / "closed"), stages=True), "cpu", threads=3, lanes=2
    )
    yield made
    (tmp_path / "load").touch()
    made.close()


def test_a_circuit_is_opened_once(shop: Workshop) -> None:
    first = shop.load("toy")
    assert shop.load("toy") is first
    assert first.result(SOON).needs.key == {"host": 1000}
    assert (first.result().tier, first.result().slots) == ("hot", 2)


def test_two_loads_at_once_open_it_once(shop: Workshop, tmp_path: Path) -> None:
    first, second = shop.load("slow"), shop.load("slow")
    begun(tmp_path / "load")
    (tmp_path / "load.begun").unlink()
    (tmp_path / "load").touch()
    assert first.result(SOON) == second.result(SOON)
    assert not (tmp_path / "load.begun").exists(), "opened twice"


def test_a_load_that_failed_is_tried_again(shop: Workshop) -> None:
    first = shop.load("broken")
    assert str(error_of(first)) == "bad key"
    second = shop.load("broken")
    assert second is not first
    assert isinstance(error_of(second), FormatError)


def test_5_a_circuit_that_was_opened_for_nothing_is_closed(
    shop: Workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fault 5: what a start that failed had taken leaked. Here the device is lost when the key is on it."""

    def lost(_: ToyCircuit) -> int:
        assert not (tmp_path / "closed").exists()
        raise KernelError("the device is lost")

    monkeypatch.setattr(ToyCircuit, "slots", lost)
    assert type(error_of(shop.load("toy"))) is KernelError
    assert (tmp_path / "closed").exists()


def test_threads_and_lanes_reach_the_circuit(shop: Workshop) -> None:
    prepared(shop, "a")
    assert shop.prove("toy", "a", 0).result(SOON).device == "toy on cpu, 3, 2"


def test_a_proof_is_of_the_jobs_own_payload(shop: Workshop) -> None:
    prepared(shop, "a")
    shop.prepare("toy", request_of("b", b"other")).result(SOON)
    assert shop.prove("toy", "a", 3).result(SOON).proof == proof_of("a", b"payload", 3)
    assert shop.prove("toy", "b", 3).result(SOON).proof == proof_of("b", b"other", 3)
    parts = [shop.prove("toy", "a", n).result(SOON) for n in range(2)]
    whole = shop.finish("toy", "a", parts).result(SOON)
    assert whole.proof == proof_of("a", b"payload", 0) + b"+" + proof_of("a", b"payload", 1)


def test_bytes_held_are_what_the_circuit_says_or_those_of_the_payload(shop: Workshop) -> None:
    shop.load("toy").result(SOON)
    assert shop.prepare("toy", request_of("a", bytes(77))).result(SOON) == 77
    assert shop.prepare("toy", request_of("b", large="1")).result(SOON) == 12345


def test_check_waits_behind_no_load_no_proof_and_no_reading(shop: Workshop, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    prepared(shop, "a", prove=f"wait {gate}")
    busy: list[Future[Any]] = [shop.prove("toy", "a", n) for n in range(4)]
    busy += [shop.prepare("toy", request_of(f"p{n}", prepare=f"wait {gate}p")) for n in range(3)]
    busy.append(shop.load("slow"))
    for path in (gate, tmp_path / "gatep", tmp_path / "load"):
        begun(path)
    assert shop.check(request_of("c")).result(SOON) is None
    assert shop.finish("toy", "a", []).result(SOON).proof == b""
    assert not any(future.done() for future in busy)
    for path in (gate, tmp_path / "gatep", tmp_path / "load"):
        path.touch()
    for future in busy:
        future.result(SOON)


def test_what_hangs_on_a_circuits_files_is_no_other_circuits_matter(
    shop: Workshop, tmp_path: Path
) -> None:
    """Loads, and checks of every priority."""
    hangs = f"wait {tmp_path}/load"
    busy: list[Future[Any]] = [shop.load("slow"), shop.unload("slow")]
    for priority in Priority:
        requests = [replace(request_of(f"{priority.name} {n}", check=hangs), priority=priority) for n in range(3)]  # fmt: skip
        busy += [shop.check(request, "slow") for request in requests]
    begun(tmp_path / "load")
    for _ in range(2):
        assert shop.load("toy").result(SOON).tier == "hot"
        shop.unload("toy").result(SOON)
    for priority in Priority:
        shop.check(replace(request_of("c"), priority=priority), "toy").result(SOON)
    assert not any(future.done() for future in busy)
    (tmp_path / "load").touch()
    for future in busy:
        future.result(SOON)
    with pytest.raises(EngineError, match="circuit slow is not loaded"):
        shop.prepare("slow", request_of("late"))  # its unload came after its load


@pytest.mark.parametrize("priority", [Priority.HIGH, Priority.CRITICAL])
@pytest.mark.parametrize("kind", ["check", "prepare", "stage", "finish"])
def test_13_nothing_waits_behind_lower_priorities(
    shop: Workshop, tmp_path: Path, kind: str, priority: Priority
) -> None:
    """Fault 13: a WinningPoSt was not even looked at before large requests that had come earlier."""
    gate = tmp_path / "gate"
    shop.load("toy").result(SOON)

    def begin(name: str, own: Priority, script: str) -> Future[Any]:
        request = replace(request_of(name), fields={kind: script}, priority=own)
        if kind == "check":
            return shop.check(request)
        read = shop.prepare("toy", request)
        if kind == "prepare":
            return read
        read.result(SOON)
        return shop.stage("toy", name, 0) if kind == "stage" else shop.finish("toy", name, [])

    lower = [begin(f"r{n}", Priority.NORMAL, f"wait {gate}") for n in range(20)]
    if priority is Priority.CRITICAL:
        lower += [begin(f"h{n}", Priority.HIGH, f"wait {gate}") for n in range(2)]
    try:
        begin("urgent", priority, "").result(SOON)
        assert not any(each.done() for each in lower)
    finally:
        gate.touch()
    for each in lower:
        each.result(SOON)


def test_partitions_run_on_as_many_threads_as_the_circuit_has_slots(
    shop: Workshop, tmp_path: Path
) -> None:
    shop.load("toy").result(SOON)
    gates = [tmp_path / f"gate{n}" for n in range(3)]
    for n, gate in enumerate(gates):
        shop.prepare("toy", request_of(str(n), prove=f"wait {gate}")).result(SOON)
    proofs = [shop.prove("toy", str(n), 0) for n in range(3)]
    begun(gates[0])
    begun(gates[1])
    assert sum(thread.name.startswith("prove-toy") for thread in threading.enumerate()) == 2
    assert not Path(f"{gates[2]}.begun").exists()
    gates[0].touch()
    begun(gates[2])
    for gate in gates:
        gate.touch()
    assert [p.result(SOON).proof for p in proofs] == [
        proof_of(str(n), b"payload", 0) for n in range(3)
    ]


def test_nothing_of_a_forgotten_job_is_left(shop: Workshop) -> None:
    prepared(shop, "a")
    prepared(shop, "b", prove="raise UnsatisfiedError constraint 3")
    assert {held.request.id for held in PREPARED} == {"a", "b"}
    assert isinstance(shop.prove("toy", "a", 0).result(SOON), PartProof)
    failed = shop.prove("toy", "b", 0)
    assert isinstance(error_of(failed), UnsatisfiedError)
    gc.disable()  # not by a collection that comes by
    try:
        shop.forget("a").result(SOON)
        shop.forget("b").result(SOON)
        until = time.monotonic() + SOON
        while len(PREPARED) and time.monotonic() < until:
            time.sleep(0.002)  # a thread that has answered lets go a moment later
        assert not len(PREPARED)
        assert failed.exception() is not None, "while its error is held"
    finally:
        gc.enable()


def test_a_request_that_cannot_be_read_is_not_kept_by_its_error(shop: Workshop) -> None:
    shop.load("toy").result(SOON)
    request = request_of("a", prepare="raise FormatError bad magic")
    gone = weakref.ref(request)
    reading = shop.prepare("toy", request)
    del request
    assert str(error_of(reading)) == "bad magic"
    until = time.monotonic() + SOON
    while gone() is not None and time.monotonic() < until:
        time.sleep(0.002)
    assert gone() is None


def test_a_job_forgotten_while_it_is_read_is_not_kept(shop: Workshop, tmp_path: Path) -> None:
    shop.load("toy").result(SOON)
    gate = tmp_path / "gate"
    reading = shop.prepare("toy", request_of("a", prepare=f"wait {gate}"))
    begun(gate)
    shop.forget("a").result(SOON)
    gate.touch()
    assert isinstance(error_of(reading), Cancelled)
    assert not len(PREPARED)
    assert "a: its request was not read" in str(error_of(shop.prove("toy", "a", 0)))


def test_a_new_try_with_the_same_id_is_read_anew(shop: Workshop, tmp_path: Path) -> None:
    """The first is let go of while it is read, and does not come in place of the second."""
    shop.load("toy").result(SOON)
    gate = tmp_path / "gate"
    old = shop.prepare("toy", request_of("a", b"old", prepare=f"wait {gate}"))
    begun(gate)
    shop.forget("a")
    shop.prepare("toy", request_of("a", b"new")).result(SOON)
    gate.touch()
    assert isinstance(error_of(old), Cancelled)
    assert shop.prove("toy", "a", 0).result(SOON).proof == proof_of("a", b"new", 0)


def test_forgetting_takes_nothing_from_a_partition_in_work(shop: Workshop, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    prepared(shop, "a", prove=f"wait {gate}")
    proving = shop.prove("toy", "a", 0)
    begun(gate)
    shop.forget("a").result(SOON)
    gate.touch()
    assert proving.result(SOON).proof == proof_of("a", b"payload", 0)


def test_what_was_not_prepared_is_not_proved(shop: Workshop) -> None:
    with pytest.raises(EngineError, match="toy is not loaded on cpu"):
        shop.prove("toy", "a", 0)
    with pytest.raises(EngineError, match="toy is not loaded on cpu"):
        shop.prepare("toy", request_of("a"))
    shop.load("toy").result(SOON)
    shop.load("other").result(SOON)
    assert "a: its request was not read on cpu" in str(error_of(shop.prove("toy", "a", 0)))
    assert "a: its request was not read on cpu" in str(error_of(shop.finish("toy", "a", [])))
    shop.prepare("toy", request_of("a")).result(SOON)
    assert type(error_of(shop.prove("other", "a", 0))) is EngineError


def test_unload_waits_for_partitions_and_closes(
    shop: Workshop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fault 5: a thread went on reading memory that was freed."""
    gate, done, come_to_it = tmp_path / "gate", list[bool](), threading.Event()
    prepared(shop, "a", prove=f"wait {gate}")
    proving = shop.prove("toy", "a", 0)
    pool = shop._places["toy"].pool
    really = pool.shutdown

    def shutdown(*, wait: bool = True) -> None:
        come_to_it.set()
        really(wait=wait)

    def close(_: ToyCircuit) -> None:
        done.append(proving.done())
        come_to_it.set()

    monkeypatch.setattr(pool, "shutdown", shutdown)
    monkeypatch.setattr(ToyCircuit, "close", close)
    begun(gate)
    closing = shop.unload("toy")
    assert come_to_it.wait(SOON)
    assert (closing.done(), done) == (False, [])
    gate.touch()
    closing.result(SOON)
    assert done == [True]
    assert shop.unload("toy").result(SOON) is None, "closed is closed"
    with pytest.raises(EngineError, match="not loaded"):
        shop.prove("toy", "a", 0)
    shop.load("toy").result(SOON)
    assert "was not read" in str(error_of(shop.prove("toy", "a", 0))), "of a key that is closed"


@pytest.mark.parametrize(
    ("script", "kind", "text"),
    [
        ("raise FormatError a.wtns: bad magic", FormatError, "a.wtns: bad magic"),
        ("raise CircuitError 3 signals, expected 4", CircuitError, "3 signals, expected 4"),
        ("raise ValueError two\nlines", InternalError, "internal error: ValueError: two lines"),
        ("raise MemoryError 3 GiB", OutOfMemory, "not enough memory on this machine: 3 GiB"),
    ],
)
def test_errors_are_ours_and_one_line(
    shop: Workshop, script: str, kind: type[CuzkError], text: str, caplog: pytest.LogCaptureFixture
) -> None:
    error = error_of(shop.check(request_of("a", check=script)))
    assert (type(error), str(error)) == (kind, text)
    assert error.__context__ is None
    traced = "Traceback (most recent call last)" in caplog.text
    assert traced == (kind is InternalError)


def test_a_missing_file_is_named(shop: Workshop, tmp_path: Path) -> None:
    shop.load("toy").result(SOON)
    gone = Payload(path=tmp_path / "gone", size=3)
    error = error_of(shop.prepare("toy", request_of("a", gone)))
    assert str(error) == f"{tmp_path}/gone: No such file or directory"


def test_a_payload_in_a_file_is_read_from_its_place(shop: Workshop, tmp_path: Path) -> None:
    (tmp_path / "spool").write_bytes(bytes(5000) + b"witness" + bytes(9))
    shop.load("toy").result(SOON)
    part = Payload(path=tmp_path / "spool", offset=5000, size=7)
    assert shop.prepare("toy", request_of("a", part)).result(SOON) == 7
    digest = sha256(b"witness").hexdigest()
    assert shop.prove("toy", "a", 0).result(SOON).proof.decode() == f"a/0/{digest}"
