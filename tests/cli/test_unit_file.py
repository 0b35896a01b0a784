"""The unit that is shipped, against the code and the document: a line that these do not bear out is found here."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
import tomllib
from collections import defaultdict
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from files import files

from command import COMMAND
from cuzk.cli.process_limits import CORE_BYTES, FILES
from cuzk.config import Settings, address
from cuzk.config.reading import settings as validated
from cuzk.errors import EngineError, FormatError, InternalError, NotReady, Unavailable
from cuzk.server.client import Client
from cuzk.server.daemon import ENDED
from daemon_process import serve

ROOT = Path(__file__).resolve().parents[2]
UNIT = ROOT / "examples" / "cuzk.service"
PAGE = (ROOT / "docs" / "operations.md").read_text()
SECTION = PAGE.partition("### Under systemd")[2].partition("\n### ")[0]
SPAN = {"": 1, "s": 1, "min": 60, "h": 3600}


def unit(path: Path = UNIT) -> dict[str, list[str]]:
    """The values of each directive, in order (systemd lets them come again, which configparser does not)."""
    found: dict[str, list[str]] = defaultdict(list)
    for line in path.read_text().splitlines():
        if line and line[0] not in "#[":
            name, equals, value = line.partition("=")
            assert equals, line
            found[name].append(value)
    return found


def seconds(name: str) -> int:
    (value,) = unit()[name]
    match = re.fullmatch(r"(\d+)(s|min|h|)", value)
    assert match, value
    return int(match[1]) * SPAN[match[2]]


def documented() -> Settings:
    """The settings that the document has for it, read as those of /etc/cuzk/cuzk.toml."""
    (block,) = re.findall(r"```toml\n(.*?)```", SECTION, re.DOTALL)
    return validated(tomllib.loads(block), Path("/etc/cuzk"), "the document")


def test_it_may_write_where_the_documented_settings_and_its_home_are() -> None:
    found = unit()
    state, runs = (
        Path("/var/lib", *found["StateDirectory"]),
        Path("/run", *found["RuntimeDirectory"]),
    )
    settings = documented()
    assert settings.daemon.state == state
    assert found["StateDirectoryMode"] == ["0700"]  # the journal refuses others
    socket = address(settings.daemon.listen).path
    assert socket is not None
    assert socket.parent == runs
    assert f"HOME={state}" in found["Environment"]  # ~/.cache/cuzk
    assert str(state) in found["RequiresMountsFor"]
    assert found["ProtectSystem"] == ["strict"]


def test_curio_s_settings_have_the_same_journal() -> None:
    """Who goes from one example to the other would leave accepted jobs in a folder that nobody reads."""
    section = PAGE.partition("### For Curio")[2].partition("\n### ")[0]
    (block,) = re.findall(r"```toml\n(.*?)```", section, re.DOTALL)
    read = validated(tomllib.loads(block), Path("/etc/cuzk"), "the document")
    assert read.daemon.state == documented().daemon.state


def test_a_stop_is_longer_than_a_drain() -> None:
    assert seconds("TimeoutStopSec") >= Settings().daemon.drain + ENDED
    assert unit()["KillMode"] == [
        "mixed"
    ]  # workers get no SIGTERM of their own: the drain needs them


def test_mistakes_in_the_settings_are_not_tried_again_and_all_else_is() -> None:
    found = unit()
    assert found["Restart"] == ["on-failure"]
    assert [int(status) for status in found["RestartPreventExitStatus"]] == [
        FormatError.exit_status
    ]
    for error in (EngineError, Unavailable, InternalError, NotReady):
        assert error.exit_status not in (0, FormatError.exit_status)


def test_it_tries_for_minutes_and_then_gives_up() -> None:
    """A driver that comes late after a boot; a start that fails takes 2 s or more."""
    tries, between = int(unit()["StartLimitBurst"][0]), seconds("RestartSec")
    assert tries * between >= 5 * 60
    assert tries * (between + 3) < seconds("StartLimitIntervalSec")


def test_its_limits_are_those_that_the_daemon_sets_itself() -> None:
    found = unit()
    assert found["LimitCORE"] == [str(CORE_BYTES)]
    assert found["LimitNOFILE"] == [str(FILES)]
    assert found["LimitMEMLOCK"] == ["infinity"]


def test_every_directive_that_the_document_names_is_in_it_with_that_value() -> None:
    found, named = unit(), 0
    for cell in re.findall(r"^\| (`.*?`[^|]*) \|", SECTION, re.MULTILINE):
        for name, value in re.findall(r"`([A-Z]\w+)(?:=([^`]*))?`", cell):
            assert name in found or name == "HOME", name
            assert not value or value in found[name], (name, value)
            named += 1
    assert named > 15
    for name in re.findall(r"`(PrivateDevices|MemoryDenyWriteExecute)`", SECTION):
        assert name not in found  # they are said to be off


def test_the_client_of_the_document_asks_where_the_settings_listen() -> None:
    lines = re.findall(r"CUZK_ADDRESS=(\S+)", SECTION)
    assert lines
    assert set(lines) == {documented().daemon.listen}


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_systemd_understands_every_line(tmp_path: Path) -> None:
    copy = tmp_path / "cuzk-copy.service"
    copy.write_text(re.sub("(?m)^ExecStart=.*", f"ExecStart={sys.executable}", UNIT.read_text()))
    done = subprocess.run(
        ["systemd-analyze", "verify", copy], capture_output=True, text=True, timeout=60, check=False
    )
    assert "cuzk-copy" not in done.stderr, done.stderr
    copy.write_text(copy.read_text().replace("WatchdogSec=60", "WatchdogSec=often"))
    done = subprocess.run(
        ["systemd-analyze", "verify", copy], capture_output=True, text=True, timeout=60, check=False
    )
    assert "cuzk-copy" in done.stderr  # it does look


def allowed_calls() -> set[str]:
    """Names, as this systemd has them for the unit's filter."""
    (filtered,) = unit()["SystemCallFilter"]
    told = subprocess.run(
        ["systemd-analyze", "syscall-filter", "--no-pager", filtered, "@default"],
        capture_output=True, text=True, timeout=60, check=True,
    ).stdout  # fmt: skip
    names: set[str] = set()
    groups = {filtered}
    for word in re.findall(r"^\s+(@?[\w-]+)", told, re.MULTILINE):
        (groups if word[0] == "@" else names).add(word)
    inner = subprocess.run(
        ["systemd-analyze", "syscall-filter", "--no-pager", *sorted(groups)],
        capture_output=True, text=True, timeout=60, check=True,
    ).stdout  # fmt: skip
    return names | set(re.findall(r"^\s+(\w+)", inner, re.MULTILINE))


@pytest.mark.slow
@pytest.mark.skipif(
    shutil.which("strace") is None or shutil.which("systemd-analyze") is None,
    reason="needs strace and systemd-analyze",
)
def test_the_daemon_and_its_worker_call_what_the_filter_lets_through() -> None:
    """A proof, a worker killed, another proof, a drain: traced."""
    with TemporaryDirectory(prefix="cuzk-") as made:
        place, made_files = Path(made), files("bn254")
        trace = place / "calls"
        given = [f"unix://{place}/s", "--status", "127.0.0.1:0", "--state", str(place / "state")]
        circuit = ["--circuit", f"c={made_files.zkey}", "--device", "cpu"]
        tracer = ["strace", "-f", "-qq", "-e", "signal=none", "-o", str(trace)]
        with serve("--listen", *given, *circuit, program=[*tracer, *COMMAND]) as served:
            with Client(served.address) as client:
                client.prove_circuit("c", made_files.wtns)
                worker = served.said(r"cpu: process (\d+) works on")[1]
                subprocess.run(["kill", "-9", worker], check=True)
                served.said(r"worker cpu lost")
                client.prove_circuit("c", made_files.wtns)
            served.processes()[1].send_signal(signal.SIGTERM)  # the tracer's child
            assert served.ended() == 0
        called = set(re.findall(r"^\d+ +(\w+)\(", trace.read_text(), re.MULTILINE))
    assert {"execve", "fdatasync", "sendto", "accept4", "flock"} <= called
    assert called - allowed_calls() == set()
