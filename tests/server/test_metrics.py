"""The metrics: text that Prometheus reads, with the snapshot's numbers."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families
from snapshots import GIB, HOSTILE, busy, hostile, idle, many

from cuzk.engine.snapshot import Snapshot
from cuzk.server.metrics import metrics_text


def read(moment: Snapshot) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    families = text_string_to_metric_families(metrics_text(moment))
    samples = [sample for family in families for sample in family.samples]
    found = {(s.name, frozenset(s.labels.items())): s.value for s in samples}
    assert len(found) == len(samples), "a sample is there twice"
    return found


def value(moment: Snapshot, name: str, **labels: str) -> float:
    return read(moment)[name, frozenset(labels.items())]


def test_totals_of_each_kind_and_of_all() -> None:
    moment = busy()
    for total in moment.totals:
        kind = total.kind.replace("-", "_")
        expected = {
            "cuzk_proofs_completed": total.done,
            "cuzk_proofs_failed": total.failed,
            "cuzk_jobs_submitted_total": total.submitted,
            "cuzk_jobs_begun_total": total.begun,
            "cuzk_jobs_cancelled_total": total.cancelled,
            "cuzk_proof_duration_seconds_count": total.done,
            "cuzk_proof_duration_seconds_sum": total.seconds,
        }
        for name, number in expected.items():
            assert value(moment, name, proof_kind=kind) == number, name
    assert value(moment, "cuzk_proofs_completed_total") == sum(t.done for t in moment.totals)
    assert value(moment, "cuzk_proofs_failed_total") == sum(t.failed for t in moment.totals)


def test_waits_by_kind_and_priority() -> None:
    moment = busy()
    for wait in moment.waits:
        labels = {"proof_kind": wait.kind.replace("-", "_"), "priority": wait.priority}
        assert value(moment, "cuzk_proof_wait_seconds_count", **labels) == wait.jobs
        assert value(moment, "cuzk_proof_wait_seconds_sum", **labels) == wait.seconds
        assert value(moment, "cuzk_proof_wait_longest_seconds", **labels) == wait.longest
    assert len(moment.waits) == 5


def test_the_queue_by_kind_and_priority() -> None:
    moment = busy()
    assert value(moment, "cuzk_queue_depth") == sum(j.state == "queued" for j in moment.jobs) == 7
    assert value(moment, "cuzk_running_jobs") == 5
    assert value(moment, "cuzk_queue_limit") == 1000
    here = Counter((j.kind, j.priority, j.state) for j in moment.jobs if not j.ended)
    for (kind, priority, state), count in here.items():
        labels = {"proof_kind": kind.replace("-", "_"), "priority": priority, "state": state}
        assert value(moment, "cuzk_queue_jobs", **labels) == count
    listed = [number for (name, _), number in read(moment).items() if name == "cuzk_queue_jobs"]
    assert sum(listed) == sum(here.values()) == 12
    assert value(moment, "cuzk_queue_oldest_seconds", priority="low") == 702


def test_memory_keys_and_workers() -> None:
    moment = busy()
    for memory in moment.memories:
        for name in ("limit", "reserved", "free"):
            found = value(moment, f"cuzk_memory_{name}_bytes", memory=memory.name)
            assert found == getattr(memory, name)
    shares = {"keys": 47 * GIB, "jobs": 76 * GIB}
    for owner, nbytes in shares.items():
        assert value(moment, "cuzk_memory_owner_bytes", memory="cuda:0", owner=owner) == nbytes
    staging = {"memory": "pinned", "owner": "staging of cuda:1"}
    assert value(moment, "cuzk_memory_owner_bytes", **staging) == 4 * GIB
    for memory in moment.memories:
        parts = [
            number
            for (name, labels), number in read(moment).items()
            if name == "cuzk_memory_owner_bytes" and ("memory", memory.name) in labels
        ]
        assert sum(parts) == memory.reserved
    tiers = {"hot": 3, "warm": 0, "cold": 1, "loading": 1, "not_ready": 1}
    for tier, count in tiers.items():
        assert value(moment, "cuzk_keys", tier=tier) == count
    held = [labels for name, labels in read(moment) if name == "cuzk_key_bytes"]
    assert len(held) == 3  # a key's size on disk is none of memory
    for worker in moment.workers:
        labels = {"worker": worker.name, "device": worker.device}
        assert value(moment, "cuzk_worker_restarts_total", **labels) == worker.restarts
        assert value(moment, "cuzk_worker_resident_bytes", **labels) == worker.resident_bytes
        assert value(moment, "cuzk_worker_partitions", **labels) == len(worker.partitions)
        assert value(moment, "cuzk_worker_up", **labels) == 1
    dead = replace(moment, workers=(replace(moment.workers[0], alive=False), moment.workers[1]))
    assert value(dead, "cuzk_worker_up", worker="cuda:0", device="cuda:0") == 0
    assert value(dead, "cuzk_gpu_workers") == 1
    free = [labels for name, labels in read(dead) if name == "cuzk_device_free_bytes"]
    assert free == [frozenset({("worker", "cuda:1"), ("device", "cuda:1")})]
    names = {name for name, _ in read(idle())}
    assert "cuzk_device_memory_bytes" not in names  # a CPU has none of its own


def test_the_daemon_itself() -> None:
    moment = replace(busy(), draining=True)
    assert value(moment, "cuzk_uptime_seconds") == moment.now - moment.started
    assert value(moment, "cuzk_draining") == 1
    assert value(moment, "cuzk_resident_bytes") == moment.rss
    assert value(moment, "cuzk_journal_bytes") == moment.journal_bytes
    assert value(moment, "cuzk_info", version=moment.version) == 1


def test_one_moment_leaves_nothing_to_the_next() -> None:
    first = metrics_text(busy())
    metrics_text(many(1000))
    assert metrics_text(busy()) == first
    assert value(idle(), "cuzk_queue_depth") == 0


def test_names_that_users_sent_are_in_no_label() -> None:
    moment = hostile()
    jobs = replace(moment, keys=())
    assert "alert" not in metrics_text(jobs)
    held = replace(
        moment, keys=(replace(moment.keys[0], bytes=7, tier="hot"),)
    )  # a circuit's id: the operator's
    assert value(held, "cuzk_key_bytes", circuit=HOSTILE, worker="") == 7


def test_every_metric_says_what_it_is() -> None:
    for family in text_string_to_metric_families(metrics_text(busy())):
        assert family.documentation.endswith((".", ")")), family.name


def test_the_manual_lists_the_metrics_that_there_are() -> None:
    manual = (Path(__file__).resolve().parents[2] / "docs" / "status.md").read_text()
    listed = set(re.findall(r"`(cuzk_[a-z_]+)`", manual.split("## Metrics")[1]))
    found = {name.removesuffix("_sum").removesuffix("_count") for name, _ in read(busy())}
    assert listed == found


def test_the_manuals_alerts_ask_for_metrics_and_labels_that_there_are() -> None:
    manual = (Path(__file__).resolve().parents[2] / "docs" / "status.md").read_text()
    alerts = re.findall(r"expr: '(.*)'", manual)
    assert len(alerts) == 7
    samples = read(busy())
    for name, labels in re.findall(r"(cuzk_[a-z_]+)(\{[^}]*\})?", "\n".join(alerts)):
        wanted = set(re.findall(r"([a-z]+)=", labels))
        assert any(found == name and wanted <= dict(given).keys() for found, given in samples), name  # fmt: skip
