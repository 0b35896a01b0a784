"""Log lines, on a terminal and in a journal, and a service manager that has gone away."""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from pathlib import Path

import pytest

from cuzk.cli.systemd import Lines, Systemd, manager, to_journal

EVENT = logging.makeLogRecord(
    {"name": "cuzk.engine", "levelname": "WARNING", "msg": "job %s", "args": ("evil\n<3>\x1b[2J",)}
)


@contextmanager
def stderr_to(path: Path) -> Iterator[str]:
    """What JOURNAL_STREAM would say of standard error."""
    with path.open("w") as file, redirect_stderr(file):
        found = os.fstat(file.fileno())
        yield f"{found.st_dev}:{found.st_ino}"


def test_an_event_is_one_line_whatever_is_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with stderr_to(tmp_path / "log") as stream:
        monkeypatch.setenv("JOURNAL_STREAM", "1:1")  # somebody else's
        assert not to_journal()
        line = Lines().format(EVENT)
        monkeypatch.setenv("JOURNAL_STREAM", stream)
        assert Lines().format(EVENT) == "<4>cuzk.engine: job evil <3>\\x1b[2J"
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d warning cuzk\.engine: job evil <3>\\x1b\[2J", line
    )


def test_a_traceback_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        raise ValueError("why")
    except ValueError:
        record = logging.makeLogRecord(
            {"levelname": "ERROR", "name": "n", "exc_info": sys.exc_info()}
        )
    with stderr_to(tmp_path / "log") as stream:
        monkeypatch.setenv("JOURNAL_STREAM", stream)
        line = Lines().format(record)
    assert line.startswith("<3>n: ")
    assert "ValueError: why" in line
    assert "\n" not in line


def test_without_a_manager_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"):
        monkeypatch.delenv(name, raising=False)
    found = manager()
    assert found == Systemd()
    found.say("READY=1")


def test_a_manager_that_has_gone_away_is_a_line_of_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    Systemd(address=str(tmp_path / "none")).say("READY=1")
    assert caplog.messages == ["NOTIFY_SOCKET: No such file or directory"]


def test_the_watchdog_of_another_process_is_not_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WATCHDOG_USEC", "60000000")
    monkeypatch.setenv("WATCHDOG_PID", str(os.getpid()))
    assert manager().watchdog == 30.0
    assert "WATCHDOG_USEC" not in os.environ
    monkeypatch.setenv("WATCHDOG_USEC", "60000000")
    monkeypatch.setenv("WATCHDOG_PID", "1")
    assert manager().watchdog == 0.0
