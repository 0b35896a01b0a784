"""An open circuit of Filecoin's: a WindowPoSt proved, and what does not hold."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
from made_posts import RANDOMNESS, made_sector
from own_files import circuit, own_files
from served import catalogue_of, filecoin
from window_posts import CIRCUIT, WINDOW, served, window_request

import cuzk.filecoin.prove as proving
from cuzk.catalogue.filecoin import OpenFilecoin
from cuzk.engine.catalogue import OpenCircuit, PartProof, Staging
from cuzk.errors import (
    FormatError,
    ProofError,
    UnsatisfiedError,
)
from cuzk.filecoin.statement import PostStatement, Sector
from cuzk.filecoin.verify import verify
from cuzk.formats.bellman import read_vk
from cuzk.verifier import Verifier


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Nothing of the user's is read or written."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("FIL_PROOFS_PARAMETER_CACHE", raising=False)
    return tmp_path


@pytest.fixture(scope="module")
def opened() -> Any:
    found = catalogue_of(
        filecoin("w", proof=CIRCUIT, insecure_key=True), parameters=own_files(CIRCUIT)
    ).open("w", "cpu", 2, None)
    yield found
    found.close()


def verifier() -> Verifier:
    (path,) = own_files(CIRCUIT).glob("*.vk")
    return Verifier(read_vk(path), insecure_key=True, threads=2)


def test_a_window_post_is_proved(opened: OpenCircuit) -> None:
    sectors = [made_sector(WINDOW, 5), made_sector(WINDOW, 9, 1)]
    asked = window_request(*(sector.blob for sector in sectors))
    prepared = opened.prepare(asked)
    assert 0.7 * asked.nbytes < prepared.nbytes < 3 * asked.nbytes
    part = opened.prove(prepared, 0)
    whole = opened.finish(prepared, [part])
    stated = tuple(Sector(s.number, s.comm_r) for s in sectors)
    assert verify(verifier(), PostStatement(WINDOW, RANDOMNESS, stated), whole.proof)
    assert (whole.proof, len(whole.proof), whole.public) == (part.proof, 192, b"")
    assert {"witness", "commit", "total"} <= part.milliseconds.keys()
    assert part.milliseconds["total"] >= part.milliseconds["witness"] + part.milliseconds["commit"]
    assert {"witness", "commit", "verify"} <= {name for _, name, _, _ in part.spans}
    assert (part.device, opened.slots(), opened.tier()) == ("cpu", 1, "hot")
    repeated = opened.prepare(window_request(sectors[0].blob))
    with pytest.raises(ProofError, match="failed its verification from public data"):
        opened.finish(repeated, [part])  # another statement's
    with pytest.raises(FormatError, match=r"expected 192 bytes .* found 384"):
        opened.finish(prepared, [part, part])
    with pytest.raises(FormatError, match="partition: expected 0 to 0, found 1"):
        opened.prove(prepared, 1)
    flipped = PartProof(bytes([part.proof[0] ^ 1]) + part.proof[1:], {}, "cpu")
    with pytest.raises(FormatError, match="proof: a: "):
        opened.finish(prepared, [flipped])


def test_a_staged_partition_is_proved_without_another_witness(
    opened: OpenFilecoin, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared = opened.prepare(window_request(made_sector(WINDOW, 5).blob))
    staged = opened.stage(prepared, 0)
    shape = circuit(CIRCUIT)
    assert staged.nbytes == 32 * (shape.inputs + shape.aux)
    monkeypatch.setattr(proving, "assign", None)
    part = opened.prove_staged(prepared, 0, staged)
    assert len(opened.finish(prepared, [part]).proof) == 192  # verified
    assert "witness" in {name for _, name, _, _ in part.spans}
    assert part.milliseconds["witness"] == staged.milliseconds
    assert isinstance(opened, Staging)
    assert opened.needs().ahead == {}  # on a CPU


def test_vanilla_proofs_that_do_not_hold(opened: OpenCircuit) -> None:
    data = bytearray(made_sector(WINDOW, 5).blob)
    data[-104] ^= 1
    asked = window_request(bytes(data))
    served().check(asked)  # well-formed
    with pytest.raises(UnsatisfiedError, match=r"sector 0 \(number 5\): challenge 9 \(node \d+\)"):
        opened.prepare(asked)
    with pytest.raises(UnsatisfiedError, match="challenged node"):
        opened.prepare(window_request(made_sector(WINDOW, 5).blob, partition_index=1))


def test_a_copy_for_another_process() -> None:
    catalogue = served()
    copy = pickle.loads(pickle.dumps(catalogue))
    assert copy.entries() == catalogue.entries()
    copy.check(window_request(made_sector(WINDOW, 5).blob))
