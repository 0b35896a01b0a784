"""The HTTP side: what it answers to whom, and the JSON."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import ssl
import stat
import subprocess
import time
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from snapshots import HOSTILE, NOW, Scripted, busy, hostile, idle, many

from cuzk.config import Settings
from cuzk.engine.snapshot import Snapshot
from cuzk.errors import FormatError, Unavailable
from cuzk.server.gate import LOOPBACK, Gate, host_name
from cuzk.server.status_json import Wanted, status_json
from cuzk.server.web import content_security_policy, web_app
from cuzk.server.web_server import serve_web

PATIENCE = 120.0  # seconds: no bound on speed, an end for a test that would hang
TOKEN = "a-token-of-the-operator"


def ask(
    app: Gate, path: str, method: str = "GET", headers: Mapping[str, str] | None = None
) -> httpx.Response:
    async def asked() -> httpx.Response:
        transport = httpx.ASGITransport(app=app)
        url = "http://localhost:9821"
        async with httpx.AsyncClient(transport=transport, base_url=url, timeout=PATIENCE) as http:
            return await http.request(method, path, headers=headers)

    return asyncio.run(asked())


def app_of(moment: Snapshot, **options: Any) -> Gate:
    return web_app(Scripted(moment), **options)


def test_the_status_has_the_documented_names() -> None:
    found = ask(app_of(busy()), "/status").json()
    assert set(found) == {
        "now", "started", "uptime_secs", "version", "process", "draining", "rss_bytes", "journal_bytes",
        "queue_limit", "proofs_last_hour", "throughput", "states", "priorities", "queues", "totals", "waits",
        "workers", "keys", "memories", "jobs", "jobs_known", "jobs_found", "jobs_from", "failures",
        "lanes", "partitions", "spans_left_out",
        "memory", "synthesis", "pipelines", "gpu_workers", "allocations", "counters", "buffers",
    }  # fmt: skip
    assert set(found["jobs"][0]) == {
        "id", "number", "kind", "circuit", "priority", "state", "accepted", "started", "ended", "age",
        "place", "payload_bytes", "deadline", "client", "partitions", "partitions_total", "code",
        "message", "milliseconds",
    }  # fmt: skip
    assert set(found["keys"][0]) == {
        "circuit", "kind", "key", "tier", "worker", "bytes", "users", "last_used", "fault",
    }  # fmt: skip
    assert set(found["memories"][0]) == {"name", "limit", "reserved", "free", "owners"}


def test_the_status_says_what_the_snapshot_says() -> None:
    found = ask(app_of(busy()), "/status").json()
    assert found["states"] == {"verifying": 1, "proving": 3, "preparing": 1, "queued": 7}
    assert found["priorities"] == {"critical": 1, "high": 1, "normal": 8, "low": 2}
    assert found["proofs_last_hour"] == sum(count for _, count in busy().throughput)
    job = found["jobs"][2]
    assert (job["id"], job["partitions_total"]) == ("porep-1000-5188", 10)
    assert [part["number"] for part in job["partitions"]] == list(range(8))  # 8 and 9: pending
    for memory in found["memories"]:
        assert memory["limit"] == memory["free"] + sum(memory["owners"].values())
    assert [failure["code"] for failure in found["failures"]] == ["unsatisfied", "worker-lost"]
    assert ["cuda:0", "porep-1000-5188", 7] in [row[:3] for row in found["partitions"]]


def test_what_curios_page_reads_is_there_under_its_names() -> None:
    found = ask(app_of(busy()), "/status").json()
    assert found["uptime_secs"] == 3 * 86400 + 4 * 3600
    assert found["memory"]["total_bytes"] == found["memory"]["used_bytes"] + found["memory"]["available_bytes"]  # fmt: skip
    pipeline = next(p for p in found["pipelines"] if p["job_id"] == "porep-1000-5188")
    assert (pipeline["total_partitions"], pipeline["partitions_done"]) == (10, 7)
    assert pipeline["partitions"][0] == {"index": 0, "state": "done", "synth_ms": 9000, "gpu_ms": 31400}  # fmt: skip
    assert [part["state"] for part in pipeline["partitions"]][6:9] == ["done", "gpu", "pending"]
    assert [w["gpu_ordinal"] for w in found["gpu_workers"]] == [0, 1]
    assert found["gpu_workers"][1]["busy_secs"] == 31.0
    assert found["counters"]["total_completed"] == 3098 + 405 + 165 + 47
    assert found["counters"]["queue_depth"] == 12
    loaded = {row["circuit_id"]: row["evictable"] for row in found["allocations"]["srs"]}
    assert loaded == {"porep-32GiB": False, "window-32GiB": False, "winning-32GiB": False}
    assert found["buffers"] == {"synth_in_flight": 1, "provers_in_flight": 3}
    over = [p["job_id"] for p in found["pipelines"] if p["partitions_done"] == 10]
    assert over == ["porep-1000-5151"]  # ended 25 s ago; the one before 141 s


def test_failures_do_not_depend_on_which_jobs_are_asked_for() -> None:
    found = ask(app_of(busy()), "/status?jobs=0&state=queued").json()
    assert [failure["code"] for failure in found["failures"]] == ["unsatisfied", "worker-lost"]


def test_a_daemon_with_nothing_to_do_has_a_status() -> None:
    found = ask(app_of(idle()), "/status").json()
    assert found["jobs"] == found["lanes"] == found["failures"] == found["pipelines"] == []
    assert found["proofs_last_hour"] == found["jobs_known"] == 0


@pytest.mark.parametrize(
    ("query", "count", "first", "found"),
    [
        ("", 200, "porep-1000-5200", 1000),
        ("?jobs=3", 3, "porep-1000-5200", 1000),
        ("?jobs=3&first=998", 2, "porep-1000-6198", 1000),
        ("?text=PoReP-1000-61", 100, "porep-1000-6100", 100),
        ("?state=queued&jobs=1", 1, "porep-1000-5204", 996),
        ("?state=ended", 0, "", 0),
        ("?text=critical", 3, "porep-1000-5200", 3),
        ("?jobs=0", 0, "", 1000),
    ],
)
def test_a_part_of_the_jobs_is_asked_for(query: str, count: int, first: str, found: int) -> None:
    answer = ask(app_of(many(1000)), f"/status{query}").json()
    assert (len(answer["jobs"]), answer["jobs_found"]) == (count, found)
    assert (answer["jobs"][0]["id"] if count else "") == first
    assert answer["jobs_known"] == 1000


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("?jobs=-1", "jobs: expected a whole number from 0 to 1000, found '-1'"),
        ("?jobs=1001", "jobs: expected a whole number from 0 to 1000, found '1001'"),
        ("?since=nan", "since: expected a whole number from 0 to 1099511627776, found 'nan'"),
        ("?spans=٣", "spans: expected a whole number from 0 to 20000, found '٣'"),
        ("?state=<b>", "state: expected one of open, ended, queued, preparing, proving, verifying, done, failed, cancelled, found '<b>'"),
    ],
)  # fmt: skip
def test_a_question_that_is_none(query: str, text: str) -> None:
    answer = ask(app_of(busy()), f"/status{query}")
    assert (answer.status_code, answer.json()) == (400, {"error": text})


def test_only_spans_since_then_and_the_newest_of_them() -> None:
    def spans(query: str) -> list[float]:
        found = ask(app_of(busy()), f"/status{query}").json()
        return sorted(span[2] for lane in found["lanes"] for span in lane["spans"])

    every = spans("")
    assert len(every) == len(busy().spans)
    assert spans(f"?since={int(NOW) - 60}") == [end for end in every if end >= NOW - 60]
    assert spans("?spans=7") == every[-7:]
    assert ask(app_of(busy()), "/status?spans=7").json()["spans_left_out"] == len(every) - 7
    assert ask(app_of(busy()), "/status?spans=0").json()["partitions"] == []


def test_hostile_names_come_through_whole_and_harmless() -> None:
    answer = ask(app_of(hostile()), "/status")
    assert answer.content.isascii()
    assert answer.json()["jobs"][0]["id"] == HOSTILE
    assert HOSTILE in answer.json()["failures"][0]["message"]
    assert answer.headers["content-type"] == "application/json"  # not a page, and nosniff says so


def quickest(work: Callable[[], object]) -> float:
    """Seconds of a processor, the least of some tries."""
    times = []
    for _ in range(9):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def test_a_thousand_jobs_are_written_about_as_quickly_as_json_can_be() -> None:
    moment = many(1000)
    known = json.loads(status_json(moment, Wanted(jobs=1000)))
    made = quickest(lambda: status_json(moment, Wanted(jobs=1000)))
    least = quickest(lambda: json.dumps(known))
    assert made < 5 * least, (made, least)  # 7 ms and 4; 2 ms for the 200 of the default


@pytest.mark.parametrize("path", ["/", "/status", "/metrics", "/healthz"])
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH"])
def test_it_changes_nothing(path: str, method: str) -> None:
    answer = ask(app_of(busy()), path, method)
    assert answer.status_code == 405
    assert set(answer.headers["allow"].replace(" ", "").split(",")) == {"GET", "HEAD"}


@pytest.mark.parametrize(
    "path", ["/", "/status", "/metrics", "/healthz", "/nothing", "/status?jobs=x"]
)
def test_every_answer_has_the_headers_that_protect(path: str) -> None:
    headers = ask(app_of(busy()), path).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "access-control-allow-origin" not in headers


def test_the_page_may_run_its_own_script_only() -> None:
    answer = ask(app_of(busy()), "/")
    policy = answer.headers["content-security-policy"]
    assert "unsafe" not in policy
    assert policy.count("sha256-") == 2
    assert policy == content_security_policy(answer.text)
    assert content_security_policy(answer.text.replace("poll();", "")) != policy
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "innerHTML" not in answer.text
    assert "http://" not in answer.text.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in answer.text


def test_healthz_says_when_it_drains() -> None:
    assert ask(app_of(busy()), "/healthz").status_code == 200
    drains = ask(app_of(replace(busy(), draining=True)), "/healthz")
    assert (drains.status_code, drains.text) == (503, "draining\n")


@pytest.mark.parametrize(
    ("host", "code"),
    [
        ("localhost", 200), ("LOCALHOST:9821", 200), ("127.0.0.1:9821", 200), ("[::1]:9821", 200),
        ("evil.example", 403), ("127.0.0.1.evil.example:9821", 403), ("localhost.", 403), ("", 403),
        ("[::1].evil.example", 200),  # no name that resolves: nothing rebinds it
    ],
)  # fmt: skip
def test_a_name_of_another_host_is_refused_on_loopback(host: str, code: int) -> None:
    app = app_of(busy(), hosts=LOOPBACK)
    for path in ("/", "/status", "/metrics", "/healthz"):
        assert ask(app, path, headers={"host": host}).status_code == code
    assert ask(app_of(busy()), "/status", headers={"host": host}).status_code == 200  # elsewhere


def test_names_of_hosts() -> None:
    assert host_name("[fe80::1]:80") == "fe80::1"
    assert host_name("a.b:1") == "a.b"
    assert host_name("a.b") == "a.b"


def basic(user: str, password: str) -> str:
    return "Basic " + b64encode(f"{user}:{password}".encode()).decode()


@pytest.mark.parametrize(
    ("authorization", "code"),
    [
        (f"Bearer {TOKEN}", 200), (f"bearer  {TOKEN}", 200),
        (basic("anybody", TOKEN), 200), (basic("", TOKEN), 200),
        (None, 401), ("", 401), ("Bearer", 401), ("Bearer ", 401), (f"Bearer {TOKEN}x", 401),
        (f"Token {TOKEN}", 401), (basic(TOKEN, ""), 401), ("Basic %%%", 401), ("Basic é", 401),
    ],
)  # fmt: skip
def test_a_token_is_asked_for(authorization: str | None, code: int) -> None:
    app = app_of(busy(), token=TOKEN)
    headers = {} if authorization is None else {"authorization": authorization.encode("latin-1")}
    for path in ("/", "/status", "/metrics", "/nothing"):
        answer = ask(app, path, headers=headers)  # type: ignore[arg-type]
        assert answer.status_code == (404 if (path, code) == ("/nothing", 200) else code)
        assert (answer.headers.get("www-authenticate", "")[:5] == "Basic") == (code == 401)
    assert ask(app, "/healthz", headers=headers).status_code == 200  # type: ignore[arg-type]


def settings(listen: str = "127.0.0.1:0", **security: Any) -> Settings:
    return Settings.model_validate({"daemon": {"status_listen": listen}, "security": security})


def test_it_serves_on_a_socket_beside_other_work_and_ends() -> None:
    async def served() -> None:
        before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
        web = await serve_web(Scripted(busy()), settings())
        assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before
        async with httpx.AsyncClient(timeout=PATIENCE) as http:
            answer = await http.get(f"http://{web.address}/status")
            assert answer.json()["version"] == "0.6.0"
            head = await http.head(f"http://{web.address}/")
            assert (head.status_code, head.content) == (200, b"")
            rebound = await http.get(
                f"http://{web.address}/status", headers={"host": "evil.example"}
            )
            assert rebound.status_code == 403
            with pytest.raises(Unavailable, match=f"{web.address}: .*another daemon"):
                await serve_web(Scripted(busy()), settings(web.address))
        async with asyncio.timeout(PATIENCE):
            await web.close()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", int(web.address.split(":")[1]))).close()

    asyncio.run(served())


def test_it_serves_on_a_socket_of_the_file_system(tmp_path: Path) -> None:
    path = tmp_path / "status.sock"

    async def served() -> None:
        web = await serve_web(Scripted(busy()), settings(f"unix://{path}"))
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        transport = httpx.AsyncHTTPTransport(uds=str(path))
        async with httpx.AsyncClient(transport=transport, timeout=PATIENCE) as http:
            answer = await http.get("http://any.name/status")  # nobody rebinds a file
            assert answer.json()["version"] == "0.6.0"
        await web.close()
        assert not path.exists()

    asyncio.run(served())


def test_it_serves_others_over_tls_with_the_token(tmp_path: Path) -> None:
    certificate, key, token = tmp_path / "c.pem", tmp_path / "k.pem", tmp_path / "token"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
         "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
         "-out", certificate, "-keyout", key],
        check=True, capture_output=True, timeout=PATIENCE,
    )  # fmt: skip
    token.write_text(f"{TOKEN}\n")
    token.chmod(0o600)
    security = {"tls_certificate": certificate, "tls_key": key, "token_file": token}

    async def served() -> None:
        web = await serve_web(
            Scripted(busy()), settings("0.0.0.0:0", allow_remote=True, **security)
        )
        url = f"https://localhost:{web.address.split(':')[1]}/status"
        trust = ssl.create_default_context(cafile=str(certificate))
        async with httpx.AsyncClient(verify=trust, timeout=PATIENCE) as http:
            assert (await http.get(url)).status_code == 401
            answer = await http.get(url, auth=("", TOKEN), headers={"host": "prover.example"})
            assert answer.json()["version"] == "0.6.0"
        await web.close()

    asyncio.run(served())


def test_a_certificate_that_is_none(tmp_path: Path) -> None:
    path = tmp_path / "c.pem"
    path.write_text("no certificate")
    path.chmod(0o600)
    with pytest.raises(FormatError, match=r"c\.pem.*: expected a certificate and its key"):
        asyncio.run(serve_web(Scripted(idle()), settings(tls_certificate=path, tls_key=path)))


def test_an_address_that_others_reach_is_none_without_a_line_that_says_so() -> None:
    with pytest.raises(ValueError, match=r"daemon\.status_listen: expected a loopback address"):
        settings("0.0.0.0:0")


def test_the_json_is_one_object_without_spaces() -> None:
    text = status_json(busy())
    assert json.loads(text)["process"] == 4242
    assert b'": ' not in text
