"""Partitions that a worker stages: made beside what runs, used once, let go of with what they belong to."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from running_workers import SOON, in_loop, running
from toy_catalogue import STAGED, ToyCatalogue, proof_of, request_of
from toy_workshop import begun, error_of, prepared

from cuzk.engine.workshop import Workshop
from cuzk.errors import Cancelled, EngineError, UnsatisfiedError, WorkerLost


@pytest.fixture
def shop() -> Iterator[Workshop]:
    made = Workshop(ToyCatalogue(stages=True), "cpu", threads=None, lanes=None)
    made.load("toy").result(SOON)
    yield made
    made.close()


def kept() -> set[tuple[str, int]]:
    """What is staged, by job and partition, with nothing collected that only a collection would find."""
    return {(part.prepared.request.id, part.partition) for part in STAGED}


def until_kept(expected: set[tuple[str, int]]) -> None:
    """A thread that has answered lets go a moment later."""
    until = time.monotonic() + SOON
    while kept() != expected:
        assert time.monotonic() < until, kept()
        time.sleep(0.002)


@pytest.fixture(autouse=True)
def uncollected() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def test_what_is_staged_is_used_once_and_gone(shop: Workshop) -> None:
    prepared(shop, "a")
    assert shop.stage("toy", "a", 1).result(SOON) == 7
    assert kept() == {("a", 1)}
    other, first, again = (shop.prove("toy", "a", number).result(SOON) for number in (0, 1, 1))
    assert (other.public, first.public, again.public) == (b"", b"staged", b"")
    assert first.proof == again.proof == proof_of("a", b"payload", 1)
    until_kept(set())


def test_a_proof_that_fails_leaves_nothing_of_what_was_staged(shop: Workshop) -> None:
    prepared(shop, "a", prove="raise UnsatisfiedError constraint 3")
    shop.stage("toy", "a", 0).result(SOON)
    failed = shop.prove("toy", "a", 0)
    assert isinstance(error_of(failed), UnsatisfiedError)
    until_kept(set())
    assert failed.exception() is not None, "while its error is held"


def test_a_partition_is_staged_while_another_is_proved(shop: Workshop, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    prepared(shop, "a", prove=f"wait {gate}")
    proofs = [shop.prove("toy", "a", number) for number in (0, 1)]  # all slots
    begun(gate)
    assert shop.stage("toy", "a", 2).result(SOON) == 7
    assert not any(proof.done() for proof in proofs)
    gate.touch()
    assert shop.prove("toy", "a", 2).result(SOON).public == b"staged"


@pytest.mark.parametrize("how", ["forget", "unstage", "unload", "prepare", "close"])
def test_it_goes_with_what_it_belongs_to(how: str) -> None:
    shop = Workshop(ToyCatalogue(stages=True), "cpu", threads=None, lanes=None)
    shop.load("toy").result(SOON)
    for name in ("a", "b"):
        prepared(shop, name)
    try:
        for name, number in (("a", 0), ("a", 1), ("b", 0)):
            shop.stage("toy", name, number).result(SOON)
        left = {("b", 0)}
        if how == "forget":
            shop.forget("a").result(SOON)
        elif how == "unstage":
            shop.unstage("a", 0).result(SOON)
            left = {("a", 1), ("b", 0)}
        elif how == "prepare":
            prepared(shop, "a")
        elif how == "unload":
            shop.unload("toy").result(SOON)
            left = set()
        else:
            shop.close()
            left = set()
        until_kept(left)
    finally:
        shop.close()


def test_unstaging_what_is_not_staged_is_no_error(shop: Workshop) -> None:
    prepared(shop, "a")
    assert shop.unstage("a", 0).result(SOON) is None
    assert shop.unstage("never heard of", 0).result(SOON) is None
    assert shop.prove("toy", "a", 0).result(SOON).public == b""


def test_a_job_forgotten_while_it_is_staged_is_not_kept(shop: Workshop, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    prepared(shop, "a", stage=f"wait {gate}")
    staging = shop.stage("toy", "a", 0)
    begun(gate)
    shop.forget("a").result(SOON)
    prepared(shop, "a")  # another one, of the same id
    gate.touch()
    assert isinstance(error_of(staging), Cancelled)
    until_kept(set())
    assert shop.prove("toy", "a", 0).result(SOON).public == b""


def test_what_was_not_prepared_is_not_staged(shop: Workshop) -> None:
    with pytest.raises(EngineError, match="other is not loaded on cpu"):
        shop.stage("other", "a", 0)
    assert "a: its request was not read on cpu" in str(error_of(shop.stage("toy", "a", 0)))


def test_a_circuit_that_stages_nothing_says_so() -> None:
    shop = Workshop(ToyCatalogue(), "cpu", threads=None, lanes=None)
    try:
        shop.load("toy").result(SOON)
        prepared(shop, "a")
        assert "stages none" in str(error_of(shop.stage("toy", "a", 0)))
        assert shop.prove("toy", "a", 0).result(SOON).public == b""
    finally:
        shop.close()


@in_loop
async def test_a_process_stages_and_what_it_staged_is_lost_with_it() -> None:
    async with running(catalogue=ToyCatalogue(stages=True)) as worker:
        await worker.load("toy")
        for name in ("a", "b"):
            await worker.prepare("toy", request_of(name))
        assert await worker.stage("toy", "a", 0) == 7
        assert await worker.stage("toy", "b", 0) == 7
        await worker.unstage("b", 0)
        assert (await worker.prove("toy", "a", 0)).public == b"staged"
        assert (await worker.prove("toy", "b", 0)).public == b""
        await worker.prepare("toy", request_of("c", stage="kill 9"))
        with pytest.raises(WorkerLost, match="SIGKILL"):
            await worker.stage("toy", "c", 0)
        await worker.unstage("a", 0)  # what is lost is let go of
