"""Proofs that a benchmark got, verified with the library."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path

import cuzk
from cuzk.verifier import Verifier


class Checked:
    """Of one key. A benchmark stops where a proof is not valid, or states something else than its witness does."""

    def __init__(self, key: Path, witnesses: Iterable[Path]) -> None:
        self._vk = cuzk.load_verifying_key(key)
        self._verifier = Verifier(self._vk, insecure_key=True)
        self.stated = [_stated(path) for path in witnesses]
        """What the proof of each witness must state: its first signals."""

    def expect(self, proof: str | bytes, public: str | bytes, witness: int = 0) -> None:
        """A proof.json and a public.json as text."""
        found = [int(signal) for signal in json.loads(public)]
        if found != self.stated[witness][: len(found)] or len(found) != len(self._vk.ic) - 1:
            sys.exit(f"a proof states {found}, its witness {self.stated[witness]}")
        signals = cuzk.load_public(_bytes(public), self._vk.curve)
        if reason := self._verifier.check(signals, cuzk.load_proof(_bytes(proof), self._vk.curve)):
            sys.exit(f"a proof is not valid: {reason}")

    def all(self, proofs: Iterable[tuple[str, str]]) -> int:
        """Of the first witness; how many."""
        count = 0
        for proof, public in proofs:
            self.expect(proof, public)
            count += 1
        return count


def _bytes(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text


def _stated(witness: Path) -> list[int]:
    """Wire 0 is the constant 1; outputs follow."""
    return cuzk.load_witness(witness).ints()[1:2]
