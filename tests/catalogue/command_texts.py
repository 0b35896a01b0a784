"""What ``cuzk prove`` says of the same bad input: the text that a catalogue's errors must have."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import cuzk.cli.app as app
from cuzk.errors import CuzkError

Command = Callable[..., str]


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Command:  # fmt: skip
    """The message of `cuzk prove`, which must refuse."""

    def run(*arguments: str | Path) -> str:
        monkeypatch.chdir(tmp_path)
        assert app.run(["prove", *map(str, arguments), "--json"]) in (1, 2)
        return str(json.loads(capsys.readouterr().out)["error"]["message"])

    return run


def said(call: Callable[..., object], *given: object) -> str:
    with pytest.raises(CuzkError) as caught:
        call(*given)
    return str(caught.value)
