"""Circuits of circom as a catalogue: the command line's words for bad witnesses and keys, proofs that verify."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from files import files, sections, wtns_bytes
from served import catalogue_of, circom, filecoin, request, witness_request

import cuzk.cli.app as app
from circuits import chain
from command import cuzk
from cuzk.catalogue import Catalogue
from cuzk.curves import BLS12_381, CURVES, Curve
from cuzk.engine.catalogue import OpenCircuit, PartProof, Route
from cuzk.errors import (
    CircuitError,
    CuzkError,
    FormatError,
    InsecureKeyError,
    NotReady,
    ProofError,
    UnsatisfiedError,
)
from cuzk.formats.bellman import write_params
from cuzk.formats.iden3.r1cs import write_r1cs
from cuzk.formats.iden3.zkey_writer import write_zkey
from cuzk.formats.snarkjs_json import read_verification_key
from cuzk.groth16 import BELLMAN, Proof
from cuzk.load import load_circuit, load_proof, load_public
from cuzk.setup import Secrets, insecure_setup
from cuzk.verifier import Verifier, verify

Command = Callable[..., str]


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:  # fmt: skip
    """The message of `cuzk prove`, which must refuse."""

    def run(*arguments: str | Path) -> str:
        monkeypatch.chdir(tmp_path)
        assert app.run(["prove", *map(str, arguments), "--json"]) in (1, 2)
        return str(json.loads(capsys.readouterr().out)["error"]["message"])

    return run


def said(call: Callable[..., object], *given: object) -> str:
    with pytest.raises(CuzkError) as caught:
        call(*given)
    return str(caught.value)


def other(curve: Curve) -> Curve:
    return next(c for c in CURVES.values() if c is not curve and not c.is_toy)


# Bad witnesses


def witnesses(name: str) -> dict[str, bytes]:
    """Every kind of bad .wtns: cut anywhere, another curve's, length, version, kind, values."""
    good = files(name).wtns.read_bytes()
    curve = CURVES[name]
    ints = [1, 35, 3, 9]
    header, values = (sections(good)[number] for number in (1, 2))

    def with_bytes(at: int, data: bytes) -> bytes:
        return good[:at] + data + good[at + len(data) :]

    return {
        **{f"cut at {n}": good[:n] for n in (1, 3, 7, 11, 20, header[0] + 8, len(good) - 1)},
        "empty": b"",
        "magic": b"zkey" + good[4:],
        "an r1cs": files(name).r1cs.read_bytes(),
        "a zkey": files(name).zkey.read_bytes(),
        "a ptau": files(name).ptau.read_bytes(),
        "json": b'{"a": 1}',
        "noise": b"\xff" * 96,
        "raw": b"".join(v.to_bytes(32, "little") for v in ints),
        "version 3": wtns_bytes(name, ints, version=3),
        "version 0": wtns_bytes(name, ints, version=0),
        "one wire less": wtns_bytes(name, [1] * 3),
        "one wire more": wtns_bytes(name, [1] * 5),
        "no wires": wtns_bytes(name, []),
        "the other curve": files(other(curve).name).wtns.read_bytes(),
        "wire 0": wtns_bytes(name, [2, *ints[1:]]),
        "not below r": wtns_bytes(name, [*ints[:3], curve.r]),
        "section twice": with_bytes(sections(good)[2][0] - 12, b"\1"),
        "a long section": with_bytes(values[0] - 8, (1 << 40).to_bytes(8, "little")),
        "another length": with_bytes(values[0] - 8, (values[1] - 32).to_bytes(8, "little")),
        "an unknown prime": with_bytes(header[0] + 4, b"\5"),
    }


@pytest.mark.parametrize("case", witnesses("bn254"))
def test_d10_a_bad_witness_has_the_command_lines_text(
    case: str, curve: Curve, command: Command, tmp_path: Path
) -> None:
    made, data = files(curve.name), witnesses(curve.name)[case]
    path = tmp_path / "w.wtns"
    path.write_bytes(data)
    catalogue = catalogue_of(circom("c", made.zkey))
    whole = str(path) if case == "empty" else path.name
    expected = command(made.zkey, path)
    assert expected.startswith(f"{whole}: ")
    expected = expected.replace(whole, "witness", 1)
    for payload in (data, path):
        asked = witness_request("c", payload)
        assert catalogue.route(asked) == Route("c", 1)
        assert said(catalogue.check, asked) == expected


def test_good_witnesses_pass(curve: Curve) -> None:
    made = files(curve.name)
    catalogue = catalogue_of(circom("c", made.zkey), circom("with", made.zkey, circuit=made.r1cs))
    version_1 = wtns_bytes(curve.name, [1, 35, 3, 9], version=1)
    for name in ("c", "with"):
        good = made.wtns.read_bytes()
        for data in (good, good + b"\0", version_1, made.false_witness.read_bytes()):
            catalogue.check(witness_request(name, data))


def test_a_check_loads_no_points(curve: Curve, tmp_path: Path) -> None:
    """Not even the pages that they are in."""
    made = files(curve.name)
    data = bytearray(made.zkey.read_bytes())
    for number in range(4, 10):
        offset, length = sections(bytes(data))[number]
        start = 4 if number == 4 else 0
        data[offset + start : offset + length] = b"\xff" * (length - start)
    key = tmp_path / "c.zkey"
    key.write_bytes(data)
    catalogue = catalogue_of(circom("c", key))
    catalogue.check(witness_request("c", made.wtns))
    assert catalogue.entries()[0].fault == ""
    assert "section 4" in said(catalogue.open, "c", "cpu", 1, 1)


def test_digests_in_a_message(curve: Curve, command: Command, tmp_path: Path) -> None:
    """Of the key's own circuit, of one beside it, of a .params."""
    made = files(curve.name)
    wrong = tmp_path / "w.wtns"
    wrong.write_bytes(wtns_bytes(curve.name, [1] * 7))
    cases = [(made.zkey, None), (made.zkey, made.r1cs)]
    if curve is BLS12_381:
        cases.append((params(tmp_path, made.r1cs), made.r1cs))
    for key, circuit in cases:
        more = [] if circuit is None else ["--circuit", circuit]
        expected = command(key, wrong, *more, "--insecure-key")
        assert "belongs to another circuit (key " in expected
        catalogue = catalogue_of(circom("c", key, circuit=circuit, insecure_key=True))
        found = said(catalogue.check, witness_request("c", wrong))
        assert found == expected.replace("w.wtns", "witness")


def params(folder: Path, r1cs: Path) -> Path:
    key = insecure_setup(load_circuit(r1cs), Secrets(tau=77, alpha=3, beta=5, delta=7), BELLMAN)
    write_params(folder / "c.params", key)
    return folder / "c.params"


# Bad keys


def keys(name: str, folder: Path) -> dict[str, tuple[Path, list[Path]]]:
    """Every kind of bad key; what stands beside it."""
    made = files(name)
    good = made.zkey.read_bytes()
    table = sections(good)

    def changed(at: int, data: bytes) -> bytes:
        return good[:at] + data + good[at + len(data) :]

    alpha = table[2][0] + 4 + 8 * CURVES[name].fp_words + 4 + 32 + 12
    contents = {
        "three bytes": good[:3],
        "in the table": good[:20],
        "in section 9": good[: sum(table[9]) - table[9][1] // 2],
        "the last byte": good[:-1],
        "empty": b"",
        "version": changed(4, b"\2"),
        "a witness": made.wtns.read_bytes(),
        "an r1cs": made.r1cs.read_bytes(),
        "json": b"[1]",
        "noise": b"\xff" * 96,
        "plonk": changed(table[1][0], b"\2"),
        "alpha off the curve": changed(alpha, bytes([good[alpha] ^ 1])),
        "section 2 is longer": changed(table[2][0] - 8, (table[2][1] + 4).to_bytes(8, "little")),
        "two headers": changed(table[3][0] - 12, b"\2"),
        "domain": changed(alpha - 4, b"\3"),
    }
    found: dict[str, tuple[Path, list[Path]]] = {}
    for i, (case, data) in enumerate(contents.items()):
        path = folder / f"{i}.zkey"
        path.write_bytes(data)
        found[case] = path, []
    os.mkfifo(folder / "pipe")
    found |= {
        "a pipe": (folder / "pipe", []),
        "a directory": (folder, []),
        "none": (folder / "none.zkey", []),
        "no circuit": (made.zkey, [folder / "none.r1cs"]),
        "another file for a circuit": (made.zkey, [made.wtns]),
    }
    return found


def test_d20_a_bad_key_is_a_fault_with_the_command_lines_text(
    curve: Curve, command: Command, tmp_path: Path
) -> None:
    made = files(curve.name)
    cases = keys(curve.name, tmp_path)
    assert len(cases) == 20
    for case, (key, beside) in cases.items():
        settings = circom("bad", key, circuit=beside[0] if beside else None)
        catalogue = catalogue_of(settings, circom("good", made.zkey))
        expected = command(key, made.wtns, *(["--circuit", *beside] if beside else []))
        bad, good = catalogue.entries()
        assert bad.fault == expected, case
        assert (good.fault, good.key_bytes) == ("", made.zkey.stat().st_size)
        line = said(catalogue.route, witness_request("bad", made.wtns))
        assert line == f"bad: not ready: {expected}"
        assert said(catalogue.check, witness_request("bad", made.wtns)) == expected
        assert said(catalogue.open, "bad", "cpu", 1, 1) == expected
        with pytest.raises(NotReady):
            catalogue.needs("bad", "cpu")
        assert catalogue.route(witness_request("good", made.wtns)) == Route("good", 1)


def test_insecure_keys(curve: Curve, command: Command, tmp_path: Path) -> None:
    made = files(curve.name)
    insecure = insecure_setup(chain(curve, 5).matrices(), Secrets(tau=77, alpha=3, beta=5, delta=1))
    key = tmp_path / "insecure.zkey"
    write_zkey(key, insecure)
    expected = command(key, made.wtns)
    assert "delta = gamma" in expected
    refused, allowed = catalogue_of(
        circom("refused", key), circom("allowed", key, insecure_key=True)
    ).entries()
    assert (refused.fault, allowed.fault) == (expected, "")
    with pytest.raises(InsecureKeyError):
        catalogue_of(circom("refused", key)).open("refused", "cpu", 1, 1)


def test_a_params_needs_its_circuit(command: Command, tmp_path: Path) -> None:
    made = files("bls12_381")
    key = params(tmp_path, made.r1cs)
    catalogue = catalogue_of(circom("c", key), circom("with", key, circuit=made.r1cs))
    alone, beside = catalogue.entries()
    assert alone.fault == command(key, made.wtns)
    assert "holds no circuit" in alone.fault
    assert beside.fault == ""
    with Opened(catalogue, "with") as opened:
        assert proved(opened, "with", made.wtns)


def test_m5_a_key_that_changes(tmp_path: Path) -> None:
    made = files("bn254")
    key = tmp_path / "c.zkey"
    catalogue = catalogue_of(circom("c", key), circom("other", made.zkey))

    def fault() -> str:
        first, second = catalogue.entries()
        assert second.fault == ""
        return first.fault

    assert fault().startswith(f"{key}: expected a .zkey or .params file, found no file of that")
    shutil.copy(made.zkey, key)
    assert fault() == ""
    key.write_bytes(made.zkey.read_bytes()[:-1])
    assert fault().startswith("c.zkey: ")
    shutil.copy(files("bls12_381").zkey, key)
    os.utime(key, (1e9, 1e9))  # another time of change
    assert fault() == ""
    with pytest.raises(CircuitError, match="expected values of BLS12-381's scalar field"):
        catalogue.check(witness_request("c", made.wtns))
    key.unlink()
    assert "no file of that name" in fault()


# Fields


def test_fields_of_a_request() -> None:
    made = files("bn254")
    catalogue = catalogue_of(circom("c", made.zkey), filecoin("window-2KiB"))
    data = made.wtns.read_bytes()
    for asked, kind, words in (
        (request("circuit", {}, data), FormatError, "circuit_id: expected a circuit's id, found none"),
        (request("circuit", {"circuit_id": 3}, data), FormatError, "circuit_id: expected"),
        (witness_request("d\n", data), NotReady, "expected one of the configuration's (c, window-2KiB), found 'd\\n'"),
        (witness_request("window-2KiB", data), FormatError, "circuit_id: expected a circuit that takes witnesses"),
        (witness_request("c"), FormatError, "witness: expected one, found none"),
        (witness_request("c", data, data), FormatError, "witness: expected one, found 2"),
        (request("stark", {}, data), FormatError, "kind: expected one of circuit, porep-c2"),
    ):  # fmt: skip
        with pytest.raises(CuzkError) as caught:
            catalogue.route(asked)
        assert type(caught.value) is kind
        assert words in str(caught.value)
        assert "\n" not in str(caught.value)


# Proofs


class Opened:
    def __init__(self, catalogue: Catalogue, name: str, lanes: int | None = None) -> None:
        self._opened = catalogue.open(name, "cpu", 2, lanes)

    def __enter__(self) -> OpenCircuit:
        return self._opened

    def __exit__(self, *_: object) -> None:
        self._opened.close()


def proved(opened: OpenCircuit, name: str, witness: Path) -> PartProof:
    return opened.prove(opened.prepare(witness_request(name, witness)), 0)


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
