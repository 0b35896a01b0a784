"""A proving service's commands, against a server that answers as it is told."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

import cuzk.cli.app as app
from command import COMMAND, environment
from cuzk.server.proving_pb2 import (
    AwaitProofResponse,
    CancelProofResponse,
    EvictSrsResponse,
    GetMetricsResponse,
    GetStatusResponse,
    PreloadSrsResponse,
    SubmitProofResponse,
)
from one_answer import Script, refuse, serving

Run = Callable[..., tuple[int, str, str]]
DONE = AwaitProofResponse(
    job_id="j", status=AwaitProofResponse.COMPLETED, proof=b"{proof}", public_signals=b"[35]", total_ms=9
)  # fmt: skip
JOB = {
    "id": "j", "number": 3, "kind": "circuit", "circuit": "cubic", "priority": "normal",
    "state": "queued", "accepted": 0.0, "started": 0.0, "ended": 0.0, "age": 3900.0, "place": 2,
    "payload_bytes": 9, "deadline": 0.0, "client": "", "partitions": [], "partitions_total": 10,
    "code": "", "message": "", "milliseconds": {},
}  # fmt: skip
STATE = {
    "now": 200.0, "started": 100.0, "version": "0.1.0", "process": 77, "draining": False,
    "queue_limit": 1000, "states": {"queued": 5, "proving": 1},
    "totals": [{"kind": "circuit", "done": 17, "failed": 1, "cancelled": 2}],
    "workers": [
        {"name": "cpu", "title": "A processor, 2 threads", "alive": True, "resident_bytes": 1 << 20, "job": "", "fault": ""},
        {"name": "cuda:0", "title": "", "alive": False, "resident_bytes": 0, "job": "", "fault": "no driver"},
    ],
    "keys": [
        {"circuit": "cubic", "tier": "warm", "worker": "cpu", "bytes": 3 << 20, "fault": ""},
        {"circuit": "gone", "tier": "not ready", "worker": "", "bytes": 0, "fault": "gone.zkey: not there"},
    ],
    "memories": [
        {"name": "host", "limit": 8 << 30, "reserved": 1 << 30},
        {
            "name": "cuda:0",
            "limit": 8 << 30,
            "reserved": 3 << 30,
            "owners": {"context on cuda:0": 1 << 30, "key a on cuda:0": 2 << 30},
        },
    ],
    "jobs": [JOB], "failures": [{"id": "evil\x1b[2J", "message": "<script>\nwhy", "ended": 75.0}],
}  # fmt: skip


@pytest.fixture
def script() -> Script:
    return Script()


@pytest.fixture
def address(script: Script, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    """What CUZK_ADDRESS says; the working folder is empty."""
    monkeypatch.chdir(tmp_path)
    with serving(script) as found:
        monkeypatch.setenv("CUZK_ADDRESS", found)
        yield found


@pytest.fixture
def run(address: str, capsys: pytest.CaptureFixture[str]) -> Run:
    del address

    def call(*arguments: object) -> tuple[int, str, str]:
        status = app.run([str(argument) for argument in arguments])
        return status, *capsys.readouterr()

    return call


def taken(request: Any, _context: Any) -> SubmitProofResponse:
    return SubmitProofResponse(job_id=request.request_id, queue_position=4)


def test_submit_prints_the_id_alone(script: Script, run: Run, tmp_path: Path) -> None:
    script.answers["SubmitProof"] = taken
    (tmp_path / "w").write_bytes(b"witness")
    options = ("--id", "j", "--priority", "critical", "--deadline", "2.5")
    assert run("submit", "cubic", "w", *options) == (0, "j\n", "")
    sent = script.seen[0]
    assert (sent.circuit_id, sent.witness, sent.priority) == ("cubic", b"witness", 4)
    assert (sent.request_id, sent.deadline_ms) == ("j", 2500)
    status, out, _ = run("submit", "cubic", "w", "--json")
    assert status == 0
    assert json.loads(out) == {"job": script.seen[1].request_id, "place": 4}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["w"]


def test_submit_and_wait_writes_what_came(script: Script, run: Run, tmp_path: Path) -> None:
    script.answers = {"SubmitProof": taken, "AwaitProof": lambda *_: DONE}
    (tmp_path / "w").write_bytes(b"witness")
    status, out, err = run("submit", "cubic", "w", "--wait")
    assert (status, out) == (0, "")
    assert "total 9 ms" in err
    assert (tmp_path / "proof.json").read_bytes() == b"{proof}"
    assert (tmp_path / "public.json").read_bytes() == b"[35]"
    status, out, err = run("await", "j", "-o", "p", "--public", "s", "--json")
    assert (status, err) == (0, "")
    answer = json.loads(out)
    assert (answer["proof"], answer["public"], answer["milliseconds"]["total"]) == ("p", "s", 9)
    assert (tmp_path / "p").read_bytes() == b"{proof}"


def test_a_proof_without_public_signals_is_bytes(script: Script, run: Run, tmp_path: Path) -> None:
    done = AwaitProofResponse(status=AwaitProofResponse.COMPLETED, proof=b"p" * 192)
    script.answers["AwaitProof"] = lambda *_: done
    assert run("await", "porep-1000-7")[0] == 0
    assert [path.name for path in tmp_path.iterdir()] == ["proof.bin"]
    assert (tmp_path / "proof.bin").read_bytes() == b"p" * 192


def test_what_cannot_be_written_is_said_before_anything_is_sent(
    script: Script, run: Run, tmp_path: Path
) -> None:
    (tmp_path / "w").write_bytes(b"")
    missing = run("submit", "c", "w", "--wait", "-o", "no/where.json")
    assert missing[0] == 2
    assert missing[2].startswith("cuzk: -o no/where.json: the directory no does not exist")
    same = run("submit", "c", "w", "--wait", "--public", "w")
    assert same[2] == "cuzk: --public w: the same file as WITNESS; name another one\n"
    early = run("submit", "c", "w", "-o", "p.json")
    assert early[2] == "cuzk: -o: expected --wait with it: the proof is not there before\n"
    assert run("await", "j", "-o", ".")[0] == 2
    assert run("submit", "c", "none")[::2] == (2, "cuzk: none: No such file or directory\n")
    assert script.seen == []


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("unsatisfied", 1),
        ("invalid-proof", 1),
        ("mismatch", 2),
        ("out-of-memory", 3),
        ("deadline", 3),
    ],
)
def test_a_failed_job_ends_the_command_as_a_proof_here_would(
    script: Script, run: Run, tmp_path: Path, code: str, status: int
) -> None:
    failed = AwaitProofResponse(
        status=AwaitProofResponse.FAILED, error_code=code, error_message="constraint 1 is broken"
    )
    script.answers["AwaitProof"] = lambda *_: failed
    (tmp_path / "proof.json").write_text("old")
    found, out, err = run("await", "j", "--json")
    assert (found, err) == (status, "cuzk: constraint 1 is broken\n")
    assert json.loads(out)["error"]["code"] == code
    assert (tmp_path / "proof.json").read_text() == "old"


@pytest.mark.parametrize(
    ("answer", "status", "code"),
    [
        (refuse(grpc.StatusCode.RESOURCE_EXHAUSTED, "1000 wait"), 3, "queue-full"),
        (refuse(grpc.StatusCode.FAILED_PRECONDITION, "no key"), 3, "not-ready"),
        (refuse(grpc.StatusCode.UNAVAILABLE, "it stops"), 3, "unavailable"),
        (refuse(grpc.StatusCode.INVALID_ARGUMENT, "w: bad"), 2, "bad-format"),
        (refuse(grpc.StatusCode.ALREADY_EXISTS, "another"), 2, "conflict"),
        (refuse(grpc.StatusCode.UNAUTHENTICATED, "no token"), 2, "refused"),
    ],
)
def test_a_refusal_is_one_line_and_its_status(
    script: Script, run: Run, tmp_path: Path, answer: Any, status: int, code: str
) -> None:
    script.answers["SubmitProof"] = answer
    (tmp_path / "w").write_bytes(b"")
    found, out, err = run("submit", "c", "w", "--json")
    error = json.loads(out)["error"]
    assert (found, error["code"], err) == (status, code, f"cuzk: {error['message']}\n")


def test_await_gives_up_at_its_timeout(script: Script, run: Run) -> None:
    script.answers["AwaitProof"] = lambda *_: AwaitProofResponse(status=AwaitProofResponse.TIMEOUT)
    assert run("await", "j", "--timeout", "0.25") == (
        3,
        "",
        "cuzk: j: not done after 0.25 s; it goes on\n",
    )
    assert script.seen[0].timeout_ms == 250


def test_the_short_commands(script: Script, run: Run) -> None:
    script.answers = {
        "CancelProof": lambda r, _: CancelProofResponse(was_running=r.job_id == "running"),
        "GetMetrics": lambda *_: GetMetricsResponse(prometheus_text="a 1\nb 2\n"),
        "PreloadSRS": lambda *_: PreloadSrsResponse(load_time_ms=12),
        "EvictSRS": lambda *_: EvictSrsResponse(was_loaded=True, freed_bytes=3 << 20),
    }
    assert run("cancel", "running") == (0, "running: cancelled; work on it had begun\n", "")
    assert run("metrics") == (0, "a 1\nb 2\n", "")
    assert run("preload", "cubic") == (0, "cubic: loaded in 12 ms\n", "")
    assert run("evict", "cubic") == (0, "cubic: unloaded, 3.0 MiB free\n", "")
    assert json.loads(run("evict", "cubic", "--json")[1])["freed_bytes"] == 3 << 20


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ("cancelled", "cancelled; no work on it had begun"),
        ("done", "ended before: done"),
        ("failed", "ended before: failed"),
        (None, "ended before: some time ago"),
    ],
)
def test_cancel_says_what_became_of_a_job_that_did_not_run(
    script: Script, run: Run, state: str | None, said: str
) -> None:
    jobs = [JOB | {"state": state}] if state else []
    moment = json.dumps(STATE | {"jobs": jobs}).encode()
    script.answers = {
        "CancelProof": lambda *_: CancelProofResponse(was_running=False),
        "GetStatus": lambda *_: GetStatusResponse(status_json=moment),
    }
    assert run("cancel", "j") == (0, f"j: {said}\n", "")


def test_status_for_people(script: Script, run: Run) -> None:
    script.answers["GetStatus"] = lambda *_: GetStatusResponse(
        status_json=json.dumps(STATE).encode()
    )
    status, out, err = run("status")
    assert (status, err) == (0, "")
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert lines[0] == "cuzk 0.1.0, process 77, up 1 min: 17 done, 1 failed, 2 cancelled"
    assert "cpu A processor, 2 threads 1.0 MiB resident idle" in lines
    assert "cuda:0 - 0 B resident NOT READY: no driver" in lines
    assert "cubic 3.0 MiB warm on cpu" in lines
    assert "gone - NOT READY: gone.zkey: not there" in lines
    assert "host 1.0 GiB of 8.0 GiB reserved" in lines
    taken = "cuda:0 3.0 GiB of 8.0 GiB reserved: keys 2.0 GiB, context on cuda:0 1.0 GiB"
    assert taken in lines
    assert "queue: 5 waiting (at most 1000), 1 in work" in lines
    assert "j cubic normal place 2 0/10 1 h 5 min" in lines
    assert "2 min ago evil\\x1b[2J: <script> why" in lines
    assert json.loads(run("status", "--json")[1]) == STATE


def test_status_of_one_job(script: Script, run: Run) -> None:
    proving = JOB | {"state": "proving", "place": -1, "partitions": [{"state": "done"}] * 3}
    state = STATE | {"jobs": [proving]}
    script.answers["GetStatus"] = lambda *_: GetStatusResponse(
        status_json=json.dumps(state).encode()
    )
    script.answers["AwaitProof"] = lambda request, _: (
        DONE if request.job_id == "old" else refuse(grpc.StatusCode.NOT_FOUND, "no job")(request, _)
    )
    assert run("status", "j")[1].splitlines() == [
        "j: proving",
        "  cubic, normal, 1 h 5 min old",
        "  3 of 10 partitions proved",
    ]
    assert run("status", "old") == (0, "old: done\n", "")
    times = {"queue": 13.4, "load": 0.2, "prove": 1370.0, "total": 1400.0, "work": 1370.0}
    one = {"partitions": [{"state": "done"}], "partitions_total": 1, "milliseconds": times}
    state["jobs"] = [JOB | one | {"state": "done", "place": -1, "age": 1.4, "ended": 1e9}]
    at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(1e9))
    assert run("status", "j")[1].splitlines() == [
        "j: done",
        f"  cubic, normal, ended {at}",
        "  queue 13 ms, prove 1370 ms, total 1400 ms",
    ]
    assert run("status", "none") == (2, "", "cuzk: no job\n")


def test_a_watch_needs_a_terminal(run: Run) -> None:
    assert run("status", "--watch") == (
        2,
        "",
        "cuzk: --watch: expected a terminal, found another output; leave it out\n",
    )


def test_a_watch_looks_again_until_it_is_interrupted(script: Script, address: str) -> None:
    states = iter([STATE, STATE | {"process": 4711}])
    last = json.dumps(STATE | {"process": 4711}).encode()

    def look(*_: Any) -> GetStatusResponse:
        state = next(states, None)
        return GetStatusResponse(status_json=json.dumps(state).encode() if state else last)

    script.answers["GetStatus"] = look
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, "status", "--watch"],
        env=environment(
            {"CUZK_ADDRESS": address, "TERM": "xterm", "COLUMNS": "100", "LINES": "40"}
        ),
        stdout=theirs,
        stderr=theirs,
        stdin=subprocess.DEVNULL,
    )
    try:
        os.close(theirs)
        shown = _until(ours, "process 4711")
        process.send_signal(signal.SIGINT)
        shown += _until(ours, None)
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    assert "process 77" in shown
    assert "Traceback" not in shown
    assert "\\x1b[2J: <script> why" in shown


def test_nobody_is_there(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    address = f"unix://{tmp_path}/none"
    assert app.run(["status", "--address", address]) == 3
    expected = f"cuzk: {address}: no proving service listens there; start one with `cuzk serve`\n"
    assert capsys.readouterr() == ("", expected)


def test_the_token_comes_from_a_file(script: Script, run: Run, tmp_path: Path) -> None:
    script.answers["GetMetrics"] = lambda *_: GetMetricsResponse(prometheus_text="a 1")
    token = tmp_path / "token"
    token.write_text("0123456789abcdef\n")
    token.chmod(0o600)
    assert run("metrics", "--token-file", token)[0] == 0
    assert script.metadata["authorization"] == "Bearer 0123456789abcdef"
    token.write_text("two words in it are none\n")
    status, _, err = run("metrics", "--token-file", token)
    assert status == 2
    assert err.startswith(f"cuzk: {token}: expected a token")


@pytest.mark.parametrize("terminal", [False, True])
def test_an_interrupted_wait_says_how_to_come_back(
    script: Script, address: str, *, terminal: bool
) -> None:
    """The job goes on; a bar is shown on a terminal alone."""
    asked = threading.Event()

    def stay(request: Any, context: grpc.ServicerContext) -> AwaitProofResponse:
        asked.set()
        gone = threading.Event()
        context.add_callback(gone.set)
        gone.wait(min(20.0, request.timeout_ms / 1000 or 20.0))
        return AwaitProofResponse(status=AwaitProofResponse.TIMEOUT)

    script.answers["AwaitProof"] = stay
    script.answers["GetStatus"] = lambda *_: GetStatusResponse(
        status_json=json.dumps(STATE).encode()
    )
    ours, theirs = pty.openpty() if terminal else os.pipe()
    process = subprocess.Popen(
        [*COMMAND, "await", "j"],
        env=environment({"CUZK_ADDRESS": address}),
        stderr=theirs,
        stdin=subprocess.DEVNULL,
    )
    try:
        os.close(theirs)
        assert asked.wait(60)
        shown = _until(ours, "2 before it") if terminal else ""
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        shown += _until(ours, None)
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    said = "cuzk: interrupted; j goes on: `cuzk await j` waits for it again"
    assert said in shown
    assert ("2 before it" in shown) == terminal
    if not terminal:
        assert shown == said + "\n"


def _until(descriptor: int, text: str | None) -> str:
    """What comes until a text has come, or to its end."""
    shown = ""
    try:
        while text is None or text not in shown:
            assert select.select([descriptor], [], [], 60)[0], shown
            if not (part := os.read(descriptor, 65536)):
                break
            shown += part.decode().replace("\r\n", "\n")
    except OSError:  # a terminal whose other end is closed
        pass
    return shown
