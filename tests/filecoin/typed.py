"""``cuzk filecoin`` as a person types it, in a folder where there is nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import cuzk.cli.app as app

Run = Callable[..., tuple[int, str, str]]


def fresh_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder; nothing of the user's is read or written."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("FIL_PROOFS_PARAMETER_CACHE", raising=False)
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def runner(capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: object) -> tuple[int, str, str]:
        status = app.run(["filecoin", *map(str, arguments)])
        shown = capsys.readouterr()
        return status, shown.out, shown.err

    return call


def refuser(run: Run, home: Path) -> Callable[..., str]:
    """The message of a command that must not write anything."""

    def call(*arguments: object, status: int = 2) -> str:
        before = sorted(home.rglob("*"))
        found, out, error = run(*arguments, "--json")
        assert found == status, (out, error)
        assert error.count("\n") == 1
        assert sorted(home.rglob("*")) == before
        fields = json.loads(out)["error"]
        assert error.split(": ", 1)[1] == f"{fields['message']}\n"
        return str(fields["message"])

    return call


def as_file(path: Path, fields: dict[str, Any]) -> Path:
    path.write_text(json.dumps(fields))
    return path
