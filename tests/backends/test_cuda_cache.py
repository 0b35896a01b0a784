"""Kernels on disk: whole or not there, whoever else writes; named by all that they depend on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from cuzk import constants
from cuzk.backends.cuda import cache as cache_module
from cuzk.backends.cuda import kernels
from cuzk.backends.cuda.cache import Cache, default_folder
from cuzk.backends.cuda.machine import Unit
from cuzk.curves import BLS12_381, BN254

VECTOR = Unit("vector.cu", BN254)


def test_what_was_put_is_got(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "a" / "b")
    assert cache.get("x") is None
    for content in (b"one", b"", b"two"):
        cache.put("x", content)
        assert cache.get("x") == content
    assert [path.name for path in (tmp_path / "a" / "b").iterdir()] == ["x"]
    assert (tmp_path / "a" / "b").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("damage", ["", "cut", "bit", "more"])
def test_damage_is_found(damage: str, tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    cache.put("x", b"content" * 100)
    whole = (tmp_path / "x").read_bytes()
    damaged = {
        "": b"",
        "cut": whole[:-1],
        "bit": whole[:300] + bytes([whole[300] ^ 1]) + whole[301:],
        "more": whole + b"\0",
    }[damage]
    (tmp_path / "x").write_bytes(damaged)
    assert cache.get("x") is None


def test_nowhere_to_write(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    for cache in (Cache(None), Cache(tmp_path / "file" / "below")):
        cache.put("x", b"content")
        assert cache.get("x") is None


def test_no_home(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    assert default_folder() == Path.home() / ".cache" / "cuzk" / "kernels"
    monkeypatch.setattr(Path, "home", homeless)
    assert default_folder() is None


def test_many_processes_write_one_entry(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from cuzk.backends.cuda.cache import Cache\n"
        "cache = Cache(Path(sys.argv[1]))\n"
        "for _ in range(50):\n"
        "    cache.put('x', sys.argv[2].encode() * 100000)\n"
        "    found = cache.get('x')\n"
        "    assert found is not None and len(set(found)) == 1, found\n"
    )
    source = Path(cache_module.__file__).parents[3]
    writers = [
        subprocess.Popen([sys.executable, "-c", code, tmp_path, letter], env={"PYTHONPATH": str(source)})
        for letter in "abc"
    ]  # fmt: skip
    try:
        assert [writer.wait(120) for writer in writers] == [0, 0, 0]
    finally:
        for writer in writers:
            writer.kill()
            writer.wait()
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


def test_built_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built = []
    right = kernels.Compiler.compile

    def counted(self: kernels.Compiler, unit: Unit, architecture: int, *more: bytes) -> tuple[bytes, str]:  # fmt: skip
        built.append((unit, architecture))
        return right(self, unit, architecture, *more)

    monkeypatch.setattr(kernels.Compiler, "compile", counted)
    first = kernels.build_all([VECTOR], 90, Cache(tmp_path))
    assert first[VECTOR][:4] == b"\x7fELF"
    assert kernels.build_all([VECTOR], 90, Cache(tmp_path)) == first
    assert built == [(VECTOR, 90)]
    (entry,) = tmp_path.iterdir()
    entry.write_bytes(entry.read_bytes()[:-5])
    assert kernels.build(VECTOR, 90, Cache(tmp_path)) == first[VECTOR]
    assert built == [(VECTOR, 90)] * 2
    assert kernels.build(VECTOR, 80, Cache(tmp_path)) != first[VECTOR]
    assert built[2:] == [(VECTOR, 80)]


def test_names_tell_apart_what_makes_a_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    sums = Unit("reduce.cu", BN254, "g1")
    units = [VECTOR, Unit("vector.cu", BLS12_381), sums, Unit("reduce.cu", BN254, "g2")]
    names = {kernels.entry_name(unit, n) for unit in units for n in (80, 90)}
    assert len(names) == 8
    before = kernels.entry_name(VECTOR, 90)
    assert before in names
    other = kernels.Compiler(None, (13, 7), (90,))
    monkeypatch.setattr(kernels, "compiler", lambda: other)
    assert kernels.entry_name(VECTOR, 90) not in names
    monkeypatch.undo()
    kernels._headers_digest.cache_clear()
    monkeypatch.setattr(constants, "header", lambda: "// another")
    try:
        assert kernels.entry_name(VECTOR, 90) not in names
    finally:
        kernels._headers_digest.cache_clear()
    monkeypatch.undo()
    assert kernels.entry_name(VECTOR, 90) == before


def test_units_of_a_group() -> None:
    found = {(unit.file, unit.group) for unit in kernels.units(BN254)}
    assert {("vector.cu", ""), ("reduce.cu", "g1"), ("reduce.cu", "g2")} <= found
    assert not {("rates.cu", ""), (kernels.PREPARING, "g1")} & found
