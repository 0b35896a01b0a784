"""What is built: a module that starts on any x86-64 or aarch64 CPU, without CUDA, from one set of sources."""

import re
import shutil
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from cuzk import _core

ROOT = Path(__file__).resolve().parents[1]
# What a CPU from before Haswell or Broadwell does not have: BMI2, ADX and all vector code of 256 bits.
NEWER = re.compile(
    r"^\s*[0-9a-f]+:\s+(mulx|adcx|adox|rorx|sarx|shlx|shrx|pdep|pext|bzhi|v[a-z0-9]+)\b",
    re.MULTILINE,
)


def objects() -> list[Path]:
    return list(ROOT.glob("build/*/CMakeFiles/**/*.o"))


def instructions(path: Path) -> str:
    tool = shutil.which("objdump")
    if tool is None:
        pytest.skip("objdump is not installed")
    return subprocess.run(
        [tool, "-d", "--no-show-raw-insn", path], capture_output=True, text=True, check=True
    ).stdout


@pytest.mark.skipif("adx" not in _core.paths(), reason="this CPU has no ADX to leave out")
def test_only_the_adx_objects_need_a_new_cpu() -> None:
    found = objects()
    if not found:
        pytest.skip("no build folder beside the tests: nothing to disassemble")
    for path in found:
        newer = {match[1] for match in NEWER.finditer(instructions(path))}
        if "_adx.dir" in str(path):
            continue
        assert not newer, f"{path.name}: {sorted(newer)}"
    adx = [path for path in found if "_adx.dir" in str(path)]
    assert any("mulx" in instructions(path) for path in adx), "the search finds nothing at all"


@pytest.mark.skipif(shutil.which("qemu-x86_64") is None, reason="qemu-user is not installed")
def test_starts_on_a_cpu_without_bmi2_adx_and_avx() -> None:
    done = subprocess.run(
        ["qemu-x86_64", "-cpu", "Nehalem", sys.executable, "-m", "cuzk", "doctor"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "arithmetic  portable (this CPU can run: portable)" in done.stdout


def test_installs_without_cuda() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = {re.split(r"[<>=\[ ]", name)[0] for name in settings["dependencies"]}
    service = {"pydantic", "protobuf", "grpclib", "grpcio", "starlette", "uvicorn"}
    assert names == {"numpy", "click", "rich", "prometheus-client", "psutil", *service}


def test_one_version_everywhere() -> None:
    from cuzk import __version__

    try:
        installed = metadata.version("cuzk")
    except metadata.PackageNotFoundError:
        pytest.skip("cuzk is not installed: run from its sources")
    assert installed == __version__
