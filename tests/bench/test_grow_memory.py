"""``bench.grow_memory``: asks for no more than is free, and says so where a machine does not grow."""

from __future__ import annotations

import pytest

from bench import grow_memory as growing
from cuzk.errors import OutOfMemory
from cuzk.prover.plan import installed_bytes


def test_a_machine_that_has_enough_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growing, "np", None)  # nothing is taken
    growing.grow_memory(installed_bytes(), 2)


def test_a_machine_that_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growing, "STEP", 64 << 20)
    sizes = iter([1 << 20, 2 << 20, 3 << 20])
    monkeypatch.setattr(growing, "installed_bytes", lambda: next(sizes))
    growing.grow_memory(3 << 20, 2)
    assert not list(sizes)


def test_a_machine_that_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growing, "installed_bytes", lambda: 5)
    monkeypatch.setattr(growing, "available_bytes", lambda: growing.SPARE + (20 << 20))
    with pytest.raises(OutOfMemory, match="grows to 7 bytes, found 5, 289406976 of them free"):
        growing.grow_memory(7, 2, patience=0.0)


def test_free_memory_is_read() -> None:
    assert 0 < growing.available_bytes() < installed_bytes()
