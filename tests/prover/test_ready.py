"""Witnesses made ready ahead of their proofs, and those that are known to be below r."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from given import circuit_of, evaluations, key_of
from proofs import key

import cuzk.prover.session as session
from circuits import cubic
from cuzk import _core
from cuzk.curves import BN254
from cuzk.errors import CircuitError, CuzkError, FormatError
from cuzk.formats.iden3.wtns import write_wtns
from cuzk.prover.session import Prover
from cuzk.vectors import CanonicalScalars
from cuzk.verifier import verify


@pytest.fixture
def prover() -> Iterator[Prover]:
    with Prover(key(), device="cpu", threads=1) as opened:
        yield opened


def test_nothing_is_done_twice(prover: Prover, monkeypatch: pytest.MonkeyPatch) -> None:
    witness = cubic(BN254).witness()
    ready = prover.ready(witness)
    assert ready.nbytes == 32 * len(witness)
    monkeypatch.setattr(session, "check_witness", None)
    monkeypatch.setattr(session, "load_witness", None)
    result = prover.prove(ready)
    assert result.public == [35]
    assert verify(key().vk, [35], result.proof)
    assert result.report.milliseconds["check"] >= ready.milliseconds > 0
    with pytest.raises(TypeError):
        prover.prove(witness)  # that would have done it


def test_from_a_file(prover: Prover, tmp_path: Path) -> None:
    write_wtns(tmp_path / "w.wtns", cubic(BN254).witness())
    ready = prover.ready(tmp_path / "w.wtns")
    assert ready.name == "w.wtns"
    result = prover.prove(ready)
    assert verify(key().vk, result.public, result.proof)


def test_evaluations_come_with_it() -> None:
    made, witness = key_of(BN254, "snarkjs"), circuit_of(BN254).witness()
    given = evaluations(BN254, "ab")
    with Prover(made, device="cpu", threads=1, insecure_key=True) as prover:
        ready = prover.ready(witness, given)
        assert ready.nbytes == witness.words.nbytes + given.a.words.nbytes + given.b.words.nbytes
        result = prover.prove(ready)
        assert verify(made.vk, result.public, result.proof, insecure_key=True)
        with pytest.raises(FormatError, match="expected them with the witness when it was made"):
            prover.prove(ready, given)


def test_nothing_of_the_witness_is_shown(prover: Prover) -> None:
    ready = prover.ready(cubic(BN254, 987654321).witness())
    assert "987654321" not in repr(ready)
    assert str(ready.public[0]) not in repr(ready)
    assert "uint64" not in repr(ready)


def test_of_another_circuit(prover: Prover) -> None:
    with Prover(key_of(BN254, "snarkjs"), device="cpu", threads=1, insecure_key=True) as other:
        ready = other.ready(circuit_of(BN254).witness())
    with pytest.raises(CircuitError, match="witness: expected a witness made ready for key"):
        prover.prove(ready)


def test_what_is_refused(prover: Prover) -> None:
    witness = cubic(BN254).witness()
    with pytest.raises(CircuitError, match="witness: expected 4 wires"):
        prover.ready(witness[:2])
    prover.close()
    with pytest.raises(CuzkError, match="found it closed"):
        prover.ready(witness)


def test_canonical_by_their_maker(prover: Prover, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not looked through again, and nobody writes into them."""
    words = np.array(cubic(BN254).witness().words)
    looked: list[int] = []
    original = _core.first_not_canonical

    def counted(*arguments: object) -> int:
        looked.append(len(arguments[2]))  # type: ignore[arg-type]
        return original(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(_core, "first_not_canonical", counted)
    prover.ready(cubic(BN254).witness())
    assert looked == [len(words)]
    witness = CanonicalScalars(BN254, words)
    ready = prover.ready(witness)
    assert looked == [len(words)]
    assert ready.witness is witness
    for array in (words, witness.words, witness[1:3].words):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    assert type(witness[1:3]).__name__ == "Scalars"
