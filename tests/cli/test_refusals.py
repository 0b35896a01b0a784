"""Bad input: exit status, one line with file, place, expected and found; no file written, the old ones intact."""

import json
import os
import struct
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from files import POWER, files, sections, wtns_bytes

import cuzk.cli.app as app
from circuits import chain
from command import cuzk, error_line
from cuzk.curves import CURVES, Curve
from cuzk.formats.iden3.r1cs import write_r1cs
from cuzk.inspect import inspect

PATIENCE = 1.0  # seconds of processors


@pytest.fixture
def refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., str]:
    """Runs a command that must be refused: the message without its prefix."""
    old = {"proof.json": "old proof", "public.json": "old signals"}

    def run(*arguments: str | Path, status: int = 2) -> str:
        folder = tmp_path / "outputs"
        folder.mkdir()
        for name, text in old.items():
            (folder / name).write_text(text)
        monkeypatch.chdir(folder)
        start = time.process_time()
        assert app.run([*map(str, arguments), "--json"]) == status
        assert time.process_time() - start < PATIENCE
        shown = capsys.readouterr()
        assert shown.err.count("\n") == 1
        message = json.loads(shown.out)["error"]["message"]
        assert shown.err == f"cuzk: {message}\n"
        assert {path.name: path.read_text() for path in folder.iterdir()} == old
        return str(message)

    return run


def changed(path: Path, place: Path, change: Callable[[bytearray], bytes | bytearray]) -> Path:
    """A copy of ``path`` in ``place`` after ``change``."""
    copy = place / path.name
    copy.write_bytes(change(bytearray(path.read_bytes())))
    return copy


CUTS: dict[str, Callable[[bytes], int]] = {
    "three bytes": lambda _: 3,
    "in the header": lambda _: 20,
    "in section 9": lambda data: sum(sections(data)[9]) - sections(data)[9][1] // 2,
    "the last byte": lambda data: len(data) - 1,
}


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("command", ["prove", "inspect"])
def test_cut_zkey(
    curve: Curve, cut: str, command: str, refused: Callable[..., str], tmp_path: Path
) -> None:
    made = files(curve.name)
    short = changed(made.zkey, tmp_path, lambda data: data[: CUTS[cut](bytes(data))])
    more = [made.wtns] if command == "prove" else []
    assert refused(command, short, *more).startswith("c.zkey: ")


@pytest.mark.parametrize("section", [2, 12])
def test_cut_ptau(curve: Curve, section: int, refused: Callable[..., str], tmp_path: Path) -> None:
    made = files(curve.name)
    offset, length = sections(made.ptau.read_bytes())[section]
    short = changed(made.ptau, tmp_path, lambda data: data[: offset + length // 2])
    line = refused("setup", made.r1cs, short, "-o", "key.zkey")
    assert f"c.ptau: section {section}" in line


@pytest.mark.parametrize("protocol", ["plonk", "fflonk"])
@pytest.mark.parametrize(
    "command", [["prove", "{key}", "{wtns}"], ["inspect", "{key}"], ["export", "vk", "{key}"]]
)
def test_other_protocols(
    protocol: str, command: list[str], refused: Callable[..., str], fixtures: Path
) -> None:
    key = fixtures / "snarkjs" / f"{protocol}_circuit.zkey"
    paths = {"key": str(key), "wtns": str(files("bn254").wtns)}
    line = refused(*(word.format(**paths) for word in command))
    assert f"protocol is {protocol}, only groth16" in line


@pytest.mark.parametrize("wires", [3, 5])
def test_witness_of_another_length(
    curve: Curve, wires: int, refused: Callable[..., str], tmp_path: Path
) -> None:
    made = files(curve.name)  # four wires: 1, out, x, x^2
    other = tmp_path / "w.wtns"
    other.write_bytes(wtns_bytes(curve.name, [1] * wires))
    line = refused("prove", made.zkey, other)
    assert line.startswith("w.wtns: ")
    assert "4 wires" in line
    assert f"found {wires}" in line


def test_raw_witness(refused: Callable[..., str], tmp_path: Path) -> None:
    made = files("bn254")
    raw = tmp_path / "raw.wtns"
    raw.write_bytes(b"".join(v.to_bytes(32, "little") for v in (1, 35, 3, 9)))
    assert "raw witness" in refused("prove", made.zkey, raw)


def test_witness_of_the_other_curve(curve: Curve, refused: Callable[..., str]) -> None:
    other = next(c for c in CURVES.values() if c is not curve and not c.is_toy)
    line = refused("prove", files(curve.name).zkey, files(other.name).wtns)
    assert curve.title in line
    assert other.title in line


def with_version(version: int) -> Callable[[bytearray], bytes | bytearray]:
    return lambda data: data[:4] + struct.pack("<I", version) + data[8:]


BAD_FILES: dict[str, tuple[str, Callable[[bytearray], bytes | bytearray], str]] = {
    "zkey version 2": ("zkey", with_version(2), "version 1 of .zkey, found 2"),
    "wtns version 3": ("wtns", with_version(3), "version 1 or 2 of .wtns, found 3"),
    "r1cs version 2": ("r1cs", with_version(2), "version 1 of .r1cs, found 2"),
    "empty zkey": ("zkey", lambda _: b"", "found an empty file"),
    "empty wtns": ("wtns", lambda _: b"", "found an empty file"),
    "wtns with zkey's magic": ("wtns", lambda data: b"zkey" + data[4:], "expected"),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_bad_frame(case: str, refused: Callable[..., str], tmp_path: Path) -> None:
    kind, change, words = BAD_FILES[case]
    made = files("bn254")
    bad = changed(getattr(made, kind), tmp_path, change)
    paths = {"zkey": made.zkey, "wtns": made.wtns, "r1cs": made.r1cs} | {kind: bad}
    if kind == "r1cs":
        line = refused("setup", paths["r1cs"], made.ptau, "-o", "key.zkey")
    else:
        line = refused("prove", paths["zkey"], paths["wtns"])
    assert line.startswith(f"{bad.name}: ") or str(bad) in line
    assert words in line


def test_wtns_version_1_works(tmp_path: Path) -> None:
    made = files("bn254")
    old = changed(made.wtns, tmp_path, with_version(1))
    assert cuzk("prove", made.zkey, old, cwd=tmp_path).status == 0


def test_directory(refused: Callable[..., str], tmp_path: Path) -> None:
    made = files("bn254")
    assert "found a directory" in refused("prove", tmp_path, made.wtns)


def test_pipe(refused: Callable[..., str], tmp_path: Path) -> None:
    made = files("bn254")
    pipe = tmp_path / "pipe.wtns"
    os.mkfifo(pipe)
    assert "found a pipe" in refused("prove", made.zkey, pipe)


def test_file_that_is_not_there(refused: Callable[..., str]) -> None:
    assert "none.zkey: " in refused("inspect", "none.zkey")


def test_unsatisfied_witness_keeps_the_old_files(curve: Curve, refused: Callable[..., str]) -> None:
    made = files(curve.name)
    refused("prove", made.zkey, made.false_witness, status=1)


@pytest.mark.parametrize("place", ["cuzk.prover.attempt.proving", "cuzk.formats.source.os.fsync"])
def test_interrupted_while_proving_and_while_writing(
    place: str, refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    made = files("bn254")
    monkeypatch.setattr(place, interrupt)
    line = refused("prove", made.zkey, made.wtns, status=130)
    assert line == "interrupted; nothing was written"


def test_unsatisfied_constraint_is_named(refused: Callable[..., str]) -> None:
    made = files("bn254")
    line = refused("prove", made.zkey, made.false_witness, "--circuit", made.r1cs, status=1)
    assert "constraint" in line


def test_damaged_key_point(curve: Curve, refused: Callable[..., str], tmp_path: Path) -> None:
    made = files(curve.name)
    offset, length = sections(made.zkey.read_bytes())[5]
    size = 2 * 8 * curve.fp_words

    def flip(data: bytearray) -> bytearray:
        data[offset + 1 * size] ^= 1
        return data

    bad = changed(made.zkey, tmp_path, flip)
    assert length > size
    line = refused("inspect", bad, "--full")
    assert "section 5 (A)" in line
    assert "point 1" in line


def test_damaged_key_makes_no_proof(
    curve: Curve, refused: Callable[..., str], tmp_path: Path
) -> None:
    made = files(curve.name)
    offset, _ = sections(made.zkey.read_bytes())[8]

    def flip(data: bytearray) -> bytearray:
        data[offset] ^= 1
        return data

    refused("prove", changed(made.zkey, tmp_path, flip), made.wtns, status=1)


def test_circuit_of_another_key(curve: Curve, refused: Callable[..., str], tmp_path: Path) -> None:
    made = files(curve.name)
    other = tmp_path / "other.r1cs"
    circuit = chain(curve, 5)
    write_r1cs(other, circuit.matrices())
    line = refused("prove", made.zkey, made.wtns, "--circuit", other)
    assert "constraints 2 and 5" in line
    assert inspect(made.zkey).digests["header and IC"][:16] in line
    assert inspect(other).digests["constraints"][:16] in line


def test_ptau_too_small(curve: Curve, refused: Callable[..., str], tmp_path: Path) -> None:
    made = files(curve.name)
    large = tmp_path / "large.r1cs"
    rows = (1 << POWER) + 1
    write_r1cs(large, chain(curve, rows).matrices())
    line = refused("setup", large, made.ptau, "-o", "key.zkey")
    assert f"{rows}" in line
    assert f"{POWER + 1}" in line


def test_r1cs_and_ptau_of_two_curves(curve: Curve, refused: Callable[..., str]) -> None:
    other = next(c for c in CURVES.values() if c is not curve and not c.is_toy)
    line = refused("setup", files(curve.name).r1cs, files(other.name).ptau, "-o", "key.zkey")
    assert "BN254" in line
    assert "BLS12-381" in line


@pytest.mark.parametrize(
    ("options", "status", "words"),
    [
        (["--device", "cuda"], 3, "cuda"),
        (["--device", "cuda:7"], 3, "cuda:7"),
        (["--device", "tpu"], 2, "tpu"),
        (["--memory", "1K"], 3, "bytes"),
        (["--memory", "much"], 2, "much"),
        (["--threads", "0"], 2, "0"),
        (["-o", "none/proof.json"], 2, "none"),
        (["-o", "public.json"], 2, "same file"),
        (["-o", "."], 2, "directory"),
        (["-o", "/dev/full"], 2, "/dev/full: cannot be written: No space left"),
        (["-o", "proof.bin"], 2, "--format json"),
    ],
)
def test_options(options: list[str], status: int, words: str, refused: Callable[..., str]) -> None:
    made = files("bn254")
    assert words in refused("prove", made.zkey, made.wtns, *options, status=status)


def test_output_over_an_input(refused: Callable[..., str]) -> None:
    made = files("bn254")
    before = made.zkey.read_bytes()
    assert "the same file as KEY" in refused("prove", made.zkey, made.wtns, "-o", made.zkey)
    assert made.zkey.read_bytes() == before


def test_name_with_line_breaks_stays_one_line(tmp_path: Path) -> None:
    line = error_line(cuzk("inspect", tmp_path / "a\nb\x1b[31m.zkey"))
    assert "\x1b" not in line


def test_key_without_contribution(fixtures: Path, refused: Callable[..., str]) -> None:
    folder = fixtures / "co-snarks" / "bn254" / "poseidon"
    line = refused("prove", folder / "circuit.zkey", folder / "witness.wtns")
    assert "delta" in line


def test_key_without_contribution_on_request(fixtures: Path, tmp_path: Path) -> None:
    folder = fixtures / "co-snarks" / "bn254" / "poseidon"
    inputs = (folder / "circuit.zkey", folder / "witness.wtns", "--insecure-key")
    assert cuzk("prove", *inputs, cwd=tmp_path).status == 0
    found = json.loads(cuzk("inspect", folder / "circuit.zkey", "--json").out)
    assert any("delta = gamma" in warning for warning in found["warnings"])
