"""A daemon of a circuit whose key's path is no text: it starts, and all that it answers can be read."""

from __future__ import annotations

import json
import os
import subprocess
import urllib.request
from pathlib import Path

from command import COMMAND, environment
from cuzk.server.client import Client
from daemon_process import Served

AS_TEXT = "\\udcff\\x1b[2J.zkey"


def test_a_key_whose_path_is_no_text_is_shown_everywhere(tmp_path: Path) -> None:
    key = os.fsdecode(os.fsencode(tmp_path) + b"/\xff\x1b[2J.zkey")
    served = Served(
        "--circuit", f"odd={key}", "--listen", "127.0.0.1:0", "--status", "127.0.0.1:0",
        "--state", tmp_path / "state", "--device", "cpu", "--threads", "1",
    )  # fmt: skip
    try:
        assert AS_TEXT in served.said(r"circuit odd: NOT READY: .*")[0]
        with Client(served.address) as client:
            (circuit,) = client.status()["keys"]
            assert "cuzk_keys" in client.metrics()
        assert circuit["key"].endswith(AS_TEXT)
        assert AS_TEXT in circuit["fault"]
        with urllib.request.urlopen(served.page.rstrip("/") + "/status", timeout=30) as answer:
            json.loads(answer.read())["keys"][0]["key"].encode()
    finally:
        served.close()


def test_a_check_of_settings_shows_it_too(tmp_path: Path) -> None:
    given = b"odd=" + os.fsencode(tmp_path) + b"/\xff\x1b[2J.zkey"
    found = subprocess.run(
        [*COMMAND, "serve", "--check", "--circuit", given],
        capture_output=True, text=True, timeout=60, check=False, env=environment(),
    )  # fmt: skip
    assert found.returncode == 0, found.stderr
    assert AS_TEXT in found.stdout
    assert found.stdout.replace("\n", "").isprintable()
