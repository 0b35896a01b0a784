"""Proofs of one small circuit on threads, and what they may leave behind: nothing."""

from __future__ import annotations

import threading
from dataclasses import replace
from functools import cache

from circuits import cubic
from cuzk.curves import BN254
from cuzk.groth16 import ProvingKey
from cuzk.prover.session import Prover, Result
from cuzk.verifier import verify
from null_backend import TIMEOUT, NullDevice
from reference_setup import key_from


@cache
def key() -> ProvingKey:
    """As a .zkey has it: without C."""
    made = key_from(cubic(BN254).matrices())
    assert made.matrices is not None
    return replace(made, matrices=replace(made.matrices, c=None))


class Proofs:
    """Each on a thread of its own, named p0, p1, ...; x is the number."""

    def __init__(self, prover: Prover) -> None:
        self.prover = prover
        self.threads: list[threading.Thread] = []
        self.found: dict[int, Result | BaseException] = {}

    def start(self, x: int) -> None:
        def work() -> None:
            try:
                self.found[x] = self.prover.prove(cubic(BN254, x).witness())
            except BaseException as error:
                self.found[x] = error

        thread = threading.Thread(target=work, name=f"p{x}", daemon=True)
        self.threads.append(thread)
        thread.start()

    def join(self) -> None:
        for thread in self.threads:
            thread.join(TIMEOUT)
            assert not thread.is_alive(), f"{thread.name} hangs"

    def expect_valid(self, *numbers: int) -> None:
        self.join()
        for x in numbers:
            result = self.found[x]
            assert isinstance(result, Result), repr(result)
            assert result.public == [x**3 + x + 5]
            assert verify(key().vk, result.public, result.proof)


def expect_nothing_held(prover: Prover, device: NullDevice | None = None) -> None:
    """No ticket, no vector on its way."""
    placed = prover._placement
    assert placed is not None
    for order in [p.order for p in (placed._first, placed._cpu) if p]:
        assert order._waiting == order._working == order._watching == []
    assert device is None or device.pinned == set()
