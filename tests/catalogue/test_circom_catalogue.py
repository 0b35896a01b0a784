"""Circuits of circom as a catalogue: the command line's words for bad witnesses, keys and fields."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from command_texts import Command, said
from command_texts import command as command
from files import files, sections, wtns_bytes
from served import Opened, catalogue_of, circom, filecoin, proved, request, witness_request

from circuits import chain
from cuzk.curves import BLS12_381, CURVES, Curve
from cuzk.engine.catalogue import Route
from cuzk.errors import (
    CircuitError,
    CuzkError,
    FormatError,
    InsecureKeyError,
    NotReady,
)
from cuzk.formats.bellman import write_params
from cuzk.formats.iden3.zkey_writer import write_zkey
from cuzk.groth16 import BELLMAN
from cuzk.load import load_circuit
from cuzk.setup import Secrets, insecure_setup


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
