"""What goes wrong in other proving services, against a daemon in a process of its own and real clients.

Numbers are those of docs/cases.md: D2 a case of group D, ``test_15`` a fault of the reference system.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import grpc
import pytest
from daemon_answers import expect_valid, job_of, owners
from files import files, slow_files, wtns_bytes

from circuits import chain
from cuzk.curves import BN254
from cuzk.errors import (
    Cancelled,
    DeadlineExceeded,
    FormatError,
    ProofError,
    QueueFull,
    Refused,
    RequestConflict,
    UnknownJob,
)
from cuzk.server.client import Client, ProofResult
from cuzk.server.proving_pb2 import (
    GetStatusRequest,
    GetStatusResponse,
    SubmitProofRequest,
    SubmitProofResponse,
)
from daemon_process import Served, halted_at_work, serve
from until import PATIENCE, until

MIB = 1 << 20
SLOW, QUICK = "slow", "quick"  # some hundredths of a second, a hundredth


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    keys = {SLOW: slow_files()[0], QUICK: files("bn254").zkey}
    given = [word for name, key in keys.items() for word in ("--circuit", f"{name}={key}")]
    state = tmp_path_factory.mktemp("state")
    state.chmod(0o700)
    with serve("--state", state, "--device", "cpu", "--threads", "1", *given) as served:
        assert served.address
        yield served


@pytest.fixture
def client(daemon: Served) -> Iterator[Client]:
    with Client(daemon.address, timeout=30) as made:
        yield made


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Served]:
    """A daemon that takes little: three requests of at most 4 MiB."""
    (tmp_path / "cuzk.toml").write_text(
        '[queue]\nlimit = 3\ncritical = 0\n[security]\nmessage_limit = "4MiB"\n'
    )
    given = ["--circuit", f"{SLOW}={slow_files()[0]}", "--device", "cpu", "--threads", "1"]
    state = tmp_path / "state"
    with serve("--config", tmp_path / "cuzk.toml", "--state", state, *given) as served:
        yield served


def unended(client: Client) -> int:
    return sum(client.status()["states"].values())


def added(totals: list[dict[str, Any]]) -> Counter[str]:
    """Over all kinds."""
    found: Counter[str] = Counter()
    for kind in totals:
        found.update({name: kind[name] for name in ("submitted", "done", "failed", "cancelled")})
    return found


def total(client: Client) -> Counter[str]:
    return added(client.status()["totals"])


def test_3_one_id_from_many_clients_is_one_job(daemon: Served, client: Client) -> None:
    """While it is accepted, in the middle of its proof, and afterwards."""
    before = total(client)["submitted"]

    def prove(_: int) -> ProofResult:
        with Client(daemon.address, timeout=30) as own:
            return own.prove_circuit(SLOW, slow_files()[1], id="same")

    with ThreadPoolExecutor(9) as threads:
        asked = [threads.submit(prove, number) for number in range(4)]
        until(lambda: any(job["id"] == "same" for job in client.status()["jobs"]))
        with pytest.raises(RequestConflict, match="'same'"):
            client.submit_circuit(SLOW, wtns_bytes("bn254", chain(BN254, 1000, seed=8).witness().ints()), id="same")  # fmt: skip
        asked += [threads.submit(prove, number) for number in range(4)]
        results = [each.result(PATIENCE) for each in asked]
    results.append(prove(9))
    results.append(
        client.prove_circuit(SLOW, slow_files()[1], id="same", priority="high", deadline=60)
    )
    assert len({(result.proof, result.public) for result in results}) == 1
    expect_valid(slow_files()[0], results[0])
    assert total(client)["submitted"] - before == 1
    assert job_of(client, "same")["partitions_total"] == 1


def test_v8_a_job_is_known_by_its_id_and_never_by_its_proof(client: Client) -> None:
    """The same statement twice is two jobs with two proofs, both of them valid."""
    twice = [client.prove_circuit(QUICK, files("bn254").wtns) for _ in range(2)]
    assert twice[0].job != twice[1].job
    assert twice[0].proof != twice[1].proof
    assert twice[0].public == twice[1].public
    for result in twice:
        expect_valid(files("bn254").zkey, result)
        with pytest.raises((UnknownJob, FormatError)):
            client.poll(result.proof.decode(), 0.1)


class Load:
    """Jobs of two circuits, some of them cancelled: ``count`` and as many more as it takes to see ``enough``.
    ``asked`` and ``taken``: how many it sent, and had an answer for."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.asked = self.taken = 0
        self.enough = False

    def run(self, client: Client) -> None:
        while self.asked < self.count or not self.enough:
            circuit = (SLOW, QUICK)[self.asked % 2]
            witness = slow_files()[1] if circuit == SLOW else files("bn254").wtns
            name = f"depth-{self.count}-{self.asked}"
            self.asked += 1
            job = client.submit_circuit(circuit, witness, id=name).job
            self.taken += 1
            if self.taken % 7 == 3:
                client.cancel(job)


@pytest.mark.parametrize("samples", [200, pytest.param(1000, marks=pytest.mark.slow)])
def test_15_depths_are_what_was_taken_and_has_not_ended(
    daemon: Served, client: Client, samples: int
) -> None:
    """Asked for while jobs come, run, end and are cancelled; Curio takes ``pending`` + ``in_progress`` for the depth."""
    load, before, depths, working = Load(samples // 10), total(client), [1], 0
    with ThreadPoolExecutor(1) as threads, grpc.insecure_channel(daemon.address) as channel:
        ask = channel.unary_unary(
            "/cuzk.v1.ProvingEngine/GetStatus",
            request_serializer=GetStatusRequest.SerializeToString,
            response_deserializer=GetStatusResponse.FromString,
        )
        loading = threads.submit(load.run, client)
        while len(depths) <= samples or not loading.done() or depths[-1]:
            least = load.taken
            answer = ask(GetStatusRequest(), timeout=60)
            most = load.asked
            depths.append(sum(queue.pending + queue.in_progress for queue in answer.queues))
            working += any(queue.in_progress for queue in answer.queues)
            load.enough = loading.done() or (max(depths) > 2 and working > 10)
            state = json.loads(answer.status_json)
            made = added(state["totals"])
            assert least <= made["submitted"] - before["submitted"] <= most
            ended = made["done"] + made["failed"] + made["cancelled"]
            assert depths[-1] == made["submitted"] - ended == sum(state["states"].values())
            assert answer.total_proofs_completed == made["done"]
            assert answer.total_proofs_failed == made["failed"]
        loading.result()
    assert max(depths) > 2
    assert working > 10
    assert total(client)["submitted"] - before["submitted"] == load.taken


def test_d2_a_critical_job_begins_next(daemon: Served, client: Client) -> None:
    """Before all that wait: once it is accepted, none of them begins earlier."""
    client.prove_circuit(QUICK, files("bn254").wtns)  # its key is loaded
    later, tries, end = 0, 0, time.monotonic() + PATIENCE
    while later < 4:  # so many waited when it came: on a quick machine it has to be tried again
        assert time.monotonic() < end
        tries += 1
        with halted_at_work(daemon, client, slow_job(client), f"other-{tries}", 30) as names:
            pass
        urgent = client.submit_circuit(QUICK, files("bn254").wtns, priority="critical")
        accepted = time.time()
        assert urgent.place == 0
        client.wait(urgent.job)
        came = job_of(client, urgent.job)["accepted"]
        (part,) = job_of(client, urgent.job)["partitions"]
        waits = {(wait["kind"], wait["priority"]): wait for wait in client.status()["waits"]}
        assert waits["circuit", "critical"]["longest"] >= part["started"] - came - 0.01
        client.wait(names[-1])
        jobs = [job_of(client, name) for name in names[-30:]]
        starts = [each["started"] for job in jobs for each in job["partitions"]]
        assert not [start for start in starts if accepted < start < part["started"]]
        later = sum(start > part["started"] for start in starts)
    until(lambda: not unended(client))


def test_d8_cancel_at_every_stage_frees_what_was_reserved(daemon: Served, client: Client) -> None:
    with halted_at_work(daemon, client, slow_job(client), "stage", 20) as names:
        assert client.cancel(names[-1]) is False  # it had not begun
        assert any(owner.startswith("job stage-") for owner in owners(client))
        until(lambda: client.status()["states"].keys() & {"preparing", "proving", "verifying"})
        cancelled = [name for name in names[:-1] if job_of(client, name)["state"] != "done"]
        for name in cancelled:
            client.cancel(name)
    gone = [name for name in cancelled if job_of(client, name)["state"] == "cancelled"]
    for name in (gone[0], names[-1]):
        with pytest.raises(Cancelled):
            client.wait(name)
    until(lambda: not unended(client))
    until(lambda: not owners(client))
    again = client.prove_circuit(SLOW, slow_files()[1], id=gone[0])
    expect_valid(slow_files()[0], again)
    assert client.cancel(gone[0]) is False
    assert client.wait(gone[0]).proof == again.proof
    with pytest.raises(UnknownJob, match="'stage-99'"):
        client.cancel("stage-99")


def test_16_a_wait_ends_at_its_time_and_its_job_goes_on(daemon: Served, client: Client) -> None:
    """The last of jobs that wait; a deadline ends its job."""
    with halted_at_work(daemon, client, slow_job(client), "wait") as names:
        assert client.poll(names[-1], 0.02) is None
        with pytest.raises(DeadlineExceeded, match="it goes on"):
            client.wait(names[-1], timeout=0.01)
    with pytest.raises(DeadlineExceeded, match="not done by its deadline"):
        client.prove_circuit(SLOW, slow_files()[1], deadline=0.001)
    expect_valid(slow_files()[0], client.wait(names[-1]))
    until(lambda: not unended(client))


def slow_job(client: Client) -> Callable[[str], object]:
    return lambda name: client.submit_circuit(SLOW, slow_files()[1], id=name)


def test_d13_after_load_everything_is_zero_and_adds_up(daemon: Served, client: Client) -> None:
    """By the RPC, the page's JSON and the metrics, after proofs, failures, refusals and cancelled jobs."""
    with halted_at_work(daemon, client, slow_job(client), "sum", 8) as names:
        client.cancel(names[-1])
    with pytest.raises(ProofError):
        client.prove_circuit(QUICK, files("bn254").false_witness)
    with pytest.raises(FormatError):
        client.prove_circuit(QUICK, b"wtns")
    until(lambda: not unended(client))
    until(lambda: not owners(client))
    state = json.load(urlopen(f"{daemon.page}/status"))
    assert (state["queues"], state["states"], state["priorities"]) == ([], {}, {})
    assert state["counters"]["queue_depth"] == 0
    assert set(state["buffers"].values()) == {0}
    assert all(not each["partitions"] and not each["job"] for each in state["workers"])
    assert {key["users"] for key in state["keys"]} == {0}
    for memory in state["memories"]:
        assert memory["reserved"] == sum(memory["owners"].values())
        assert memory["free"] + memory["reserved"] == memory["limit"]
    made = total(client)
    assert min(made["failed"], made["cancelled"], made["done"]) > 0
    assert made["submitted"] == made["done"] + made["failed"] + made["cancelled"]
    text = urlopen(f"{daemon.page}/metrics").read().decode()
    rows = (line.rpartition(" ") for line in text.splitlines() if line and line[0] != "#")
    numbers = {name: float(value) for name, _, value in rows}
    assert numbers["cuzk_queue_depth"] == numbers["cuzk_running_jobs"] == 0
    assert numbers["cuzk_proofs_completed_total"] == made["done"]
    assert numbers["cuzk_proofs_failed_total"] == made["failed"]
    assert numbers['cuzk_jobs_submitted_total{proof_kind="circuit"}'] == made["submitted"]
    assert numbers['cuzk_jobs_cancelled_total{proof_kind="circuit"}'] == made["cancelled"]
    assert numbers['cuzk_memory_reserved_bytes{memory="host"}'] == next(
        memory["reserved"] for memory in state["memories"] if memory["name"] == "host"
    )


def test_d16_a_full_queue_says_its_length_and_has_room_later(small: Served) -> None:
    with Client(small.address, timeout=30) as client:
        submit = slow_job(client)
        with full(small, client) as names:
            with grpc.insecure_channel(small.address) as channel, pytest.raises(grpc.RpcError) as refused:  # fmt: skip
                channel.unary_unary(
                    "/cuzk.v1.ProvingEngine/SubmitProof",
                    request_serializer=SubmitProofRequest.SerializeToString,
                    response_deserializer=SubmitProofResponse.FromString,
                )(SubmitProofRequest(request_id="x", proof_kind="CIRCUIT", circuit_id=SLOW,
                                     witness=slow_files()[1].read_bytes()), timeout=60)  # fmt: skip
            assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
            assert refused.value.details() == (
                "3 requests are waiting or in work, the limit is 3: try again later"
            )
            with pytest.raises(QueueFull):
                submit("more")
            same = client.submit_circuit(SLOW, slow_files()[1], id=names[-1])
            assert same.job == names[-1]  # it attaches
        client.wait(names[0])
        submit("more")
        expect_valid(slow_files()[0], client.wait("more"))


@contextmanager
def full(small: Served, client: Client) -> Iterator[list[str]]:
    """Three jobs, none of them done as long as this lasts."""
    submit = slow_job(client)
    for attempt in count():
        names = [f"full-{attempt}-{number}" for number in range(3)]
        for name in names:
            submit(name)
        with small.halted():
            if sum(client.status()["states"].values()) == 3:
                yield names
                return
        for name in names:
            client.wait(name)


@pytest.mark.parametrize("mib", [5, 50, pytest.param(129, marks=pytest.mark.slow)])
def test_d6_large_requests_arrive(client: Client, mib: int) -> None:
    """A witness whose file has so much more in it, in a section that no reader knows."""
    witness = padded(files("bn254").wtns.read_bytes(), mib * MIB)
    result = client.prove_circuit(QUICK, witness, id=f"large-{mib}")
    expect_valid(files("bn254").zkey, result)
    assert job_of(client, f"large-{mib}")["payload_bytes"] == len(witness) > mib * MIB


def test_d6_a_request_above_the_limit_is_refused_in_words(small: Served) -> None:
    witness = padded(slow_files()[1].read_bytes(), 9 * MIB)
    with Client(small.address, timeout=30) as client:
        with pytest.raises(
            Refused, match=r"expected a message of at most [0-9,]+ bytes, found one of 9,4"
        ):
            client.submit_circuit(SLOW, witness)
        assert client.prove_circuit(SLOW, slow_files()[1]).proof


def padded(wtns: bytes, nbytes: int) -> bytes:
    """With one more section."""
    count = int.from_bytes(wtns[8:12], "little") + 1
    section = (99).to_bytes(4, "little") + nbytes.to_bytes(8, "little") + bytes(nbytes)
    return wtns[:8] + count.to_bytes(4, "little") + wtns[12:] + section


def test_d19_a_failure_is_shown_with_its_reason_and_its_time(
    daemon: Served, client: Client
) -> None:
    name = "<script>alert(1)</script>&'\""
    before = time.time()
    job = client.submit_circuit(QUICK, files("bn254").false_witness, id=name).job
    with pytest.raises(ProofError) as reason:
        client.wait(job)
    page = urlopen(daemon.page).read().decode()
    assert "alert(1)" not in page
    answer = urlopen(f"{daemon.page}/status")
    assert answer.headers["content-type"] == "application/json"
    (shown,) = [each for each in json.load(answer)["failures"] if each["id"] == name]
    assert (shown["code"], shown["message"]) == ("invalid-proof", str(reason.value))
    assert before < shown["ended"] < time.time()
    assert "alert" not in client.metrics()
    assert daemon.said(r"failed '<script>.*invalid-proof")
