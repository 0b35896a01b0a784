"""``bench.serve_porep`` without a proof: what it makes of a daemon's status, and what stops it."""

from __future__ import annotations

from typing import Any

import pytest
from own_files import own_files

from bench.serve_porep import settings, verify
from bench.serve_porep_report import show, use
from bench.sparse_sector import Owner, seal_of, sparse_c1
from cuzk.config.reading import read_settings
from cuzk.errors import FormatError


def part(number: int, started: float, ended: float) -> dict[str, Any]:
    spent = {"load": 9.0, "witness": 250.0, "total": 1000.0}
    return {"number": number, "worker": "cuda:0", "started": started, "ended": ended, "milliseconds": spent}  # fmt: skip


STATE: dict[str, Any] = {  # seconds
    "jobs": [
        {
            "id": "porep-1000-1", "accepted": 9.0, "started": 10.0, "milliseconds": {"queue": 1000},
            "partitions": [part(0, 10, 12), part(1, 12, 14)],
        },
        {"id": "porep-1000-2", "partitions": [{**part(0, 14, 0), "ended": 0.0}]},
    ],
    "lanes": [
        {"worker": "cuda:0", "track": "cuda:0 compute", "spans": [
            ["quotient", 10.5, 12.0, "porep-1000-1"], ["wait for cuda:0 copy", 10.5, 11.0, "porep-1000-1"],
            ["copy to host", 12.0, 12.5, "porep-1000-1"], ["before", 2.0, 3.0, "porep-1000-0"],
        ]},
        {"worker": "cuda:0", "track": "prove", "spans": [["total", 10.0, 14.0, "porep-1000-1"]]},
    ],
    "spans_left_out": 3,
}  # fmt: skip


def test_the_devices_time() -> None:
    """Of 4 s the stream works for 1 and copies for a half; what was before does not count."""
    found = use(STATE)
    assert (found["seconds"], found["partitions"], found["left_out"]) == (4.0, 2, 3)
    assert found["percent"] == {"cuda:0 compute": 37.5, "prove": 100.0, "the device computes": 25.0}
    assert use({**STATE, "jobs": []}) == {}


def test_what_is_shown() -> None:
    row = {
        "load_ms": 22_000, "ready_s": 23.0, "jobs": STATE["jobs"], "use": use(STATE),
        "sectors": [{"job": "porep-1000-1", "sent": 8.5, "answered": 14.25, "bytes": 3 << 20, "made_s": 2.0}],
        "ledger": {"host": (5_000_000_000, {"key porep-32GiB on cuda:0": 4_000_000_000})},
        "limits": {"host": 9_000_000_000}, "driver": {"cuda:0": (1_000_000_000, 70_000_000_000)},
        "peak": {"daemon": 70_000_000},
    }  # fmt: skip
    text = "\n".join(show(row))
    for wanted in (
        "porep-1000-1: 5.75 s from Prove to proof, C1 of 3.0 MiB",
        "accepted after 0.50 s, first partition after 1.50 s",
        "partition 1 on cuda:0: 2000 ms; witness 250, total 1000",
        "5.00 at most, of 9.00: key porep-32GiB on cuda:0 4.00",
        "70.00 at most in use, 1.00 at first",
        "3 spans are not in here",
    ):
        assert wanted in text


def test_the_daemons_settings(tmp_path: Any) -> None:
    options = {"device": "cuda:0", "threads": 32}
    (tmp_path / "cuzk.toml").write_text(settings("porep-32GiB", tmp_path / "keys", options))
    read = read_settings(tmp_path / "cuzk.toml")
    assert (read.devices.use, read.devices.threads) == (("cuda:0",), 32)
    assert read.filecoin.parameters == tmp_path / "keys"
    assert [circuit.id for circuit in read.circuits] == ["porep-32GiB"]


def test_a_sector_without_a_proof_stops_it() -> None:
    seal = seal_of("2KiB")
    c1 = sparse_c1(seal, owner=Owner(1000, 7))
    names = ("replica_id", "comm_d", "comm_r", "seed")
    public = {name: getattr(c1, name).hex() for name in names} | {"porep_id": seal.porep_id().hex()}
    failed = {"job": "porep-1000-7", "status": "FAILED", "message": "too large", "proof": "", "public": public}  # fmt: skip
    (vk,) = own_files("window-2KiB").glob("*.vk")
    with pytest.raises(SystemExit, match="porep-1000-7: FAILED: too large"):
        verify({"sectors": [failed]}, seal, str(vk), 1)
    with pytest.raises(FormatError, match="expected 192 bytes"):
        verify({"sectors": [{**failed, "status": "COMPLETED"}]}, seal, str(vk), 1)
