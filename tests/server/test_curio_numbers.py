"""Numbers that Curio's page reads: none below zero, whatever clock and ledgers do."""

from __future__ import annotations

from dataclasses import replace

from snapshots import GIB, busy, open_jobs

from cuzk.engine.snapshot import MemoryView, PartitionView
from cuzk.server.curio_status import curio_status


def test_a_ledger_that_is_over_has_nothing_available() -> None:
    host = MemoryView("host", 8 * GIB, 9 * GIB, -GIB, {"key a on cpu": 9 * GIB})
    found = curio_status(replace(busy(), memories=(host,)))["memory"]
    assert found == {"total_bytes": 8 * GIB, "used_bytes": 9 * GIB, "available_bytes": 0}


def test_a_clock_that_was_set_back_makes_no_negative_times() -> None:
    moment = busy()
    found = curio_status(replace(moment, now=moment.started - 60))
    assert found["uptime_secs"] == 0
    assert {row["started_secs_ago"] for row in found["pipelines"]} == {0}
    assert {row["busy_secs"] for row in found["gpu_workers"]} == {0}
    assert {row["last_used_secs_ago"] for row in found["allocations"]["srs"]} == {0}


def test_no_more_is_active_than_there_may_be() -> None:
    moment = busy()
    reading = [replace(open_jobs(moment.now)[4], id=f"job-{n}") for n in range(5)]
    assert {job.state for job in reading} == {"preparing"}
    found = curio_status(replace(moment, jobs=tuple(reading)))["synthesis"]
    assert found == {"max_concurrent": 5, "active": 5}
    assert curio_status(replace(moment, jobs=()))["synthesis"] == {"max_concurrent": 2, "active": 0}


def test_partitions_that_are_staged_have_curios_words() -> None:
    moment = busy()
    job = open_jobs(moment.now)[2]
    states = ("done", "proving", "staged", "staging", "pending")
    parts = tuple(PartitionView(number, state) for number, state in enumerate(states))
    found = curio_status(replace(moment, jobs=(replace(job, partitions=parts),)))
    (pipeline,) = found["pipelines"]
    assert [part["state"] for part in pipeline["partitions"]] == [
        "done", "gpu", "synth_done", "synthesizing", "pending",
    ]  # fmt: skip
