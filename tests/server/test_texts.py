"""Texts from outside in what the service answers: a path with bytes that are no text stops no status."""

from __future__ import annotations

from dataclasses import replace

from snapshots import idle

from cuzk.server.messages import status_message
from cuzk.server.proving_pb2 import GetStatusResponse

NO_TEXT = "/keys/\udcff\x1b[2J.zkey"
"""As Python has the path b"/keys/\\xff..."."""


def test_a_worker_whose_fault_names_a_path_that_is_no_text_is_shown() -> None:
    moment = idle()
    dead = replace(
        moment.workers[0], name="cuda:0", device="cuda:0", title="", alive=False, fault=NO_TEXT
    )
    sent = status_message(replace(moment, workers=(dead,)), b"{}").SerializeToString()
    assert GetStatusResponse.FromString(sent).gpus[0].name == "cuda:0: /keys/\\udcff\x1b[2J.zkey"
