import json
import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

import cuzk.cli.app as app
from command import COMMAND, cuzk, environment, error_line
from cuzk import __version__, _core
from cuzk.errors import CuzkError, OutOfMemory, UnsatisfiedError


def test_version_names_the_arithmetic_path() -> None:
    done = cuzk("--version")
    assert done.status == 0
    assert done.out.startswith(f"cuzk {__version__} ")
    assert f"arithmetic: {_core.paths()[0]}" in done.out
    assert "CUDA support: installed" in done.out  # the tests have its compiler


def test_portable_path_forced_by_variable() -> None:
    assert "arithmetic: portable" in cuzk("--version", variables={"CUZK_CPU_PATH": "portable"}).out


@pytest.mark.parametrize(
    ("name", "value"), [("CUZK_CPU_PATH", "fast"), ("CUZK_NO_GPU", "maybe"), ("CUZK_NO_GPU", "2")]
)
def test_variables_that_mean_nothing_are_refused(name: str, value: str) -> None:
    line = error_line(cuzk("doctor", variables={name: value}))
    assert line.startswith(f"{name}: expected ")
    assert line.endswith(f"found '{value}'")


@pytest.mark.parametrize(
    "arguments",
    [
        ["prove"], ["nonsense"], ["--nonsense"], ["verify", "x"],
        ["filecoin", "prove"], ["filecoin", "verify"], ["filecoin", "setup", "window-2KiB"],
        ["filecoin", "circuit-info"], ["filecoin", "nonsense"], ["filecoin", "prove", "x", "--miner", "y"],
    ],
)  # fmt: skip
def test_usage_errors(arguments: list[str]) -> None:
    line = error_line(cuzk(*arguments))
    assert "--help" in line


def test_usage_error_as_json() -> None:
    done = cuzk("prove", "--json")
    assert done.status == 2
    assert done.err.count("\n") == 1
    error = json.loads(done.out)["error"]
    assert error["code"] == "usage"
    assert "KEY" in error["message"]


def test_the_help_has_every_command_once() -> None:
    """Those of a proving service in a list of their own."""
    lists = cuzk("--help").out.split("Commands:")[1].split("Proving service:")
    named = [re.findall(r"^  ([a-z]+)  ", part, re.MULTILINE) for part in lists]
    assert sorted(named[0] + named[1]) == sorted(app.MODULES)
    assert {"serve", "submit", "await", "status"} <= set(named[1])


def test_no_command_shows_the_help() -> None:
    done = cuzk()
    assert done.status == 2
    assert done.out == ""
    assert "prove" in done.err


@pytest.mark.parametrize(
    ("raised", "status", "code"),
    [
        (UnsatisfiedError("witness.wtns: constraint 3"), 1, "unsatisfied"),
        (CuzkError("plain"), 2, "error"),
        (OutOfMemory("4 GiB"), 3, "out-of-memory"),
        (MemoryError(), 3, "out-of-memory"),
        (FileNotFoundError(2, "No such file or directory", "x.zkey"), 2, "file"),
        (ZeroDivisionError("a\nb"), 2, "internal"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_every_exception_is_one_line(
    raised: BaseException,
    status: int,
    code: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise raised

    monkeypatch.setattr(app.cuzk_group, "invoke", fail)
    monkeypatch.delenv("CUZK_DEBUG", raising=False)
    assert app.run(["inspect", "x", "--json"]) == status
    shown = capsys.readouterr()
    assert shown.err.count("\n") == 1
    assert shown.err.startswith("cuzk: ")
    error = json.loads(shown.out)["error"]
    assert error["code"] == code
    assert shown.err == f"cuzk: {error['message']}\n"


def test_traceback_only_on_request(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise CuzkError("seen")

    monkeypatch.setattr(app.cuzk_group, "invoke", fail)
    monkeypatch.setenv("CUZK_DEBUG", "1")
    assert app.run(["doctor"]) == 2
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["doctor", "--json"]])
def test_reader_that_goes_away_is_no_error(arguments: list[str]) -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [*COMMAND, *arguments],
        env=environment(),
        stdout=write,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(write)
    assert done.returncode == 0
    assert done.stderr == b""


@pytest.mark.parametrize(
    ("line", "status"),
    [("--version >&-", 0), ("nonsense --json >&-", 2), ("nonsense 2>&-", 2), ("--help >&-", 0)],
)
def test_streams_that_were_never_open(line: str, status: int) -> None:
    shell = f"{shlex.join(COMMAND)} {line}"
    done = subprocess.run(
        ["sh", "-c", shell], env=environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == status
    assert done.stdout == ""
    assert done.stderr.count("\n") == (1 if ">&-" in line and status and "2>" not in line else 0)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")
@pytest.mark.parametrize("more", [[], ["--json"]])
def test_standard_output_on_a_full_disk(more: list[str]) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [*COMMAND, "doctor", *more],
            env=environment(),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr == "cuzk: standard output: cannot be written: No space left on device\n"


def test_interrupted_while_loading() -> None:
    """Ctrl-C before the first command's module is there."""
    code = (
        "import sys\n"
        "class Interrupt:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'click': raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupt())\n"
        "from cuzk.cli import main\n"
        "main(['--version'])\n"
    )
    done = subprocess.run(
        [*COMMAND[:1], "-c", code],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == "cuzk: interrupted; nothing was written\n"
