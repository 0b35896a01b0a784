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

import cuzk.cli.app as app
from cuzk.cli import serve
from cuzk.cli.systemd import Lines, Systemd, manager
from cuzk.cli.terminal import to_journal

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


def test_the_line_of_an_error_has_its_priority_in_a_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``journalctl -p warning`` showed why a daemon's work failed, and not why it had not started."""
    with stderr_to(tmp_path / "log") as stream:
        monkeypatch.setenv("JOURNAL_STREAM", stream)
        assert app.run(["serve", "--config", str(tmp_path / "none.toml")]) == 2
    (line,) = (tmp_path / "log").read_text().splitlines()
    assert line.startswith(f"<3>cuzk: {tmp_path / 'none.toml'}: expected a file of settings")


def test_a_bug_that_ends_the_daemon_has_it_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Not status 2, with which the unit leaves it as it is: the journal may hold accepted jobs."""

    async def broken(*_: object) -> int:
        raise ZeroDivisionError("why")

    monkeypatch.setattr(serve, "run_daemon", broken)
    monkeypatch.setattr(serve, "start_log", lambda _: None)  # the log is the test's
    monkeypatch.setattr(serve, "limit_process", lambda: None)
    with redirect_stderr(tmp_path.joinpath("log").open("w")) as stderr:
        status = app.run(["serve", "--state", str(tmp_path / "state"), "--device", "cpu"])
        stderr.close()
    assert status == 3
    assert "this is a bug" in caplog.text
    assert "ZeroDivisionError: why" in (tmp_path / "log").read_text()
