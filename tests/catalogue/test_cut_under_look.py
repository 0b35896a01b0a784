"""A key's file that is cut in place while a daemon looks at it: an error in one line, never a SIGBUS."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from shutil import copytree

import pytest

from circuits import chain
from cuzk.curves import BLS12_381
from cuzk.formats.bellman import write_params
from cuzk.formats.iden3.r1cs import write_r1cs
from cuzk.formats.iden3.zkey_writer import write_zkey
from cuzk.groth16 import BELLMAN
from cuzk.setup import Secrets, insecure_setup

CUT_AFTER_OPENING = """
import os, sys
from pathlib import Path

from cuzk.catalogue import filecoin, key_facts
from cuzk.catalogue.key_facts import KeyOnDisk
from cuzk.config import CircuitSettings, FilecoinSettings
from cuzk.errors import FormatError

path, cut, circuit = Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3])
whole, first = cut.read_bytes(), "open_circuit" if cut == circuit else "key_kind"
module = filecoin if sys.argv[4] == "filecoin" else key_facts
look = getattr(module, first)

def known():
    if module is key_facts:
        return KeyOnDisk.at(path, circuit, insecure=True)
    settings = CircuitSettings(id="porep-2KiB", kind="filecoin", key=path, insecure_key=True)
    return filecoin.FilecoinCircuit.of(settings, FilecoinSettings())

def cutting(source):
    os.truncate(cut, left)
    return look(source)

setattr(module, first, cutting)
for left in map(int, sys.argv[5:]):
    cut.write_bytes(whole)
    try:
        known().facts()
        print("whole")
    except FormatError as error:
        print(error)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A .zkey and a .params of one circuit, and its .r1cs; each of some pages."""
    found = tmp_path_factory.mktemp("keys")
    matrices = chain(BLS12_381, 200).matrices()
    write_r1cs(found / "x.r1cs", matrices)
    write_zkey(
        found / "x.zkey", insecure_setup(matrices, Secrets(tau=77, alpha=3, beta=5, delta=7))
    )
    write_params(
        found / "x.params",
        insecure_setup(matrices, Secrets(tau=77, alpha=3, beta=5, delta=7), BELLMAN),
    )
    return found


@pytest.mark.parametrize(
    ("kind", "key", "cut"),
    [
        ("circom", "x.zkey", "x.zkey"),
        ("circom", "x.params", "x.params"),
        ("circom", "x.zkey", "x.r1cs"),
        ("filecoin", "x.params", "x.params"),
    ],
)
def test_a_file_cut_between_opening_and_reading_is_an_error(
    folder: Path, tmp_path: Path, kind: str, key: str, cut: str
) -> None:
    copytree(folder, tmp_path, dirs_exist_ok=True)
    cuts = ("0",) if cut == "x.r1cs" else ("0", "3", "13", "5000")
    found = subprocess.run(
        [sys.executable, "-c", CUT_AFTER_OPENING, *(tmp_path / n for n in (key, cut, "x.r1cs")), kind, *cuts],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert found.returncode != -signal.SIGBUS, "the process died of the file"
    assert found.returncode == 0, found.stderr
    lines = found.stdout.splitlines()
    assert len(lines) == len(cuts)
    for line in lines:
        assert line.startswith(f"{cut}: ")
        assert "the file was cut short while it was read" in line
