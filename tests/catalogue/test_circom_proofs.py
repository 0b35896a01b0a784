"""Circuits of circom as a catalogue: proofs that verify, as the command line writes them; false witnesses."""

from __future__ import annotations

import json
import pickle
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from command_texts import Command, said
from command_texts import command as command
from files import files
from served import Opened, catalogue_of, circom, proved, witness_request

from circuits import chain
from command import cuzk
from cuzk.curves import Curve
from cuzk.engine.catalogue import OpenCircuit, PartProof, Route
from cuzk.errors import (
    FormatError,
    ProofError,
    UnsatisfiedError,
)
from cuzk.formats.iden3.r1cs import write_r1cs
from cuzk.formats.snarkjs_json import read_verification_key
from cuzk.groth16 import Proof
from cuzk.load import load_proof, load_public
from cuzk.verifier import Verifier, verify


@pytest.fixture
def opened(curve: Curve) -> Iterator[OpenCircuit]:
    with Opened(catalogue_of(circom("c", files(curve.name).zkey)), "c") as found:
        yield found


def test_a_proof_as_the_command_line_writes_it(
    curve: Curve, opened: OpenCircuit, tmp_path: Path
) -> None:
    made = files(curve.name)
    before = time.time()
    prepared = opened.prepare(witness_request("c", made.wtns))
    part = opened.prove(prepared, 0)
    whole = opened.finish(prepared, [part])
    after = time.time()
    assert cuzk("prove", made.zkey, made.wtns, cwd=tmp_path).status == 0
    assert whole.public == (tmp_path / "public.json").read_bytes()
    written = json.loads((tmp_path / "proof.json").read_bytes())
    assert json.loads(whole.proof).keys() == written.keys()
    assert whole.proof.endswith(b"\n") == (tmp_path / "proof.json").read_bytes().endswith(b"\n")
    vk = read_verification_key(made.vk)
    signals = load_public(whole.public, curve)
    assert signals == [35]
    assert verify(vk, signals, load_proof(whole.proof, curve))
    assert part.device == "cpu"
    assert {"total", "commit", "verify", "check"} <= part.milliseconds.keys()
    assert {"commit", "verify"} <= {name for _, name, _, _ in part.spans}
    for _track, _name, start, end in part.spans:
        assert before - 0.05 <= start <= end <= after + 0.05
    assert (opened.slots(), opened.tier()) == (2, "hot")  # a small circuit on a CPU


@pytest.mark.parametrize("lanes", [1, 3])
def test_lanes(curve: Curve, lanes: int) -> None:
    made = files(curve.name)
    with Opened(catalogue_of(circom("c", made.zkey)), "c", lanes) as found:
        assert found.slots() == lanes


def test_a_large_circuit_has_the_cpu_for_itself(
    curve: Curve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only a small one leaves a thread without work for long."""
    monkeypatch.setattr("cuzk.catalogue.circom.SMALL", 1)
    with Opened(catalogue_of(circom("c", files(curve.name).zkey)), "c") as found:
        assert found.slots() == 1


def test_false_witnesses(curve: Curve, opened: OpenCircuit, command: Command) -> None:
    made = files(curve.name)
    expected = command(made.zkey, made.false_witness)
    with pytest.raises(ProofError) as caught:
        proved(opened, "c", made.false_witness)
    assert str(caught.value) == expected
    beside = catalogue_of(circom("c", made.zkey, circuit=made.r1cs))
    named = command(made.zkey, made.false_witness, "--circuit", made.r1cs)
    with (
        Opened(beside, "c") as found,
        pytest.raises(UnsatisfiedError, match="witness: constraint 0 of 2") as broken,
    ):
        proved(found, "c", made.false_witness)
    assert str(broken.value) == named.replace("false.wtns", "witness")


def test_a_proof_from_a_journal_is_verified_again(curve: Curve, opened: OpenCircuit) -> None:
    made = files(curve.name)
    part = proved(opened, "c", made.wtns)
    later = opened.prepare(witness_request("c", made.wtns))
    whole = opened.finish(later, [part])
    assert (whole.proof, whole.public) == (part.proof, part.public)
    fields = json.loads(part.proof)
    fields["pi_a"], fields["pi_c"] = fields["pi_c"], fields["pi_a"]
    swapped = PartProof(json.dumps(fields).encode(), {}, "cpu", public=part.public)
    with pytest.raises(ProofError, match="a stored proof failed its verification"):
        opened.finish(later, [swapped])
    with pytest.raises(ProofError, match="a stored proof failed"):
        opened.finish(later, [PartProof(part.proof, {}, "cpu", public=b'["36"]')])
    with pytest.raises(FormatError, match="one partition, found 0"):
        opened.finish(later, [])


def test_a_proof_that_was_made_here_is_verified_once(
    monkeypatch: pytest.MonkeyPatch, opened: OpenCircuit, curve: Curve
) -> None:
    calls: list[object] = []
    real = Verifier.check

    def counted(self: Verifier, public: Sequence[int], proof: Proof) -> str:
        calls.append(public)
        return real(self, public, proof)

    monkeypatch.setattr(Verifier, "check", counted)
    prepared = opened.prepare(witness_request("c", files(curve.name).wtns))
    opened.finish(prepared, [opened.prove(prepared, 0)])
    assert calls == [[35]]


def test_another_digest(command: Command) -> None:
    made = files("bn254")
    catalogue = catalogue_of(circom("c", made.zkey, key_digest="0" * 32))
    assert catalogue.entries()[0].fault == ""  # the file is hashed when it is opened
    expected = command(made.zkey, made.wtns, "--key-digest", "0" * 32)
    assert said(catalogue.open, "c", "cpu", 1, 1) == expected


def test_nothing_of_a_witness_is_shown(curve: Curve, opened: OpenCircuit) -> None:
    asked = witness_request("c", files(curve.name).wtns.read_bytes())
    prepared = opened.prepare(asked)
    opened.prove(prepared, 0)
    for text in (repr(asked), repr(prepared)):
        assert "words" not in text
        assert "array" not in text


def test_a_copy_for_another_process(curve: Curve) -> None:
    made = files(curve.name)
    catalogue = catalogue_of(circom("c", made.zkey), circom("d", Path("/none.zkey")))
    before = catalogue.entries()
    copy = pickle.loads(pickle.dumps(catalogue))
    assert copy.entries() == before
    copy.check(witness_request("c", made.wtns))
    r1cs = made.r1cs.with_name("unused.r1cs")
    write_r1cs(r1cs, chain(curve, 3).matrices())
    assert copy.route(witness_request("c", made.wtns)) == Route("c", 1)
