"""The journal against a dictionary, closed and opened at any time."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from journal_jobs import make_job, part_proof

from cuzk.engine.job import Job, Outcome, Partition, State
from cuzk.engine.journal import Journal
from cuzk.engine.request import Payload
from cuzk.errors import EngineError

IDS = st.sampled_from(["a", "b", "c", "d"])


class Model(RuleBasedStateMachine):
    """A dictionary, and a journal that is closed and opened at any time."""

    @initialize()
    def begin(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="journal"))
        self.loop = asyncio.new_event_loop()
        self.journal = Journal(self.folder)
        self.number = 1
        self.now = 0.0
        self.jobs: dict[str, Job] = {}
        self.bytes: dict[str, list[bytes]] = {}

    def outcome(self, job_id: str) -> Outcome | None:
        return self.jobs[job_id].outcome if job_id in self.jobs else None

    @rule(job_id=IDS, payload=st.lists(st.tuples(st.binary(max_size=9000), st.booleans()), max_size=3),
          partitions=st.integers(1, 4))  # fmt: skip
    def accept(self, job_id: str, payload: list[tuple[bytes, bool]], partitions: int) -> None:
        spool = self.journal.spool()
        parts = []
        for data, in_file in payload:
            spool.write(data if in_file else b"")
            at = spool.size - len(data)
            parts.append(spool.payload(at, len(data)) if in_file else Payload.of(data))
        job = make_job(self.number, *parts, job_id=job_id, partitions=partitions, accepted=self.now)
        older = self.jobs.get(job_id)
        if older is None or older.state in (State.FAILED, State.CANCELLED):
            self.loop.run_until_complete(self.journal.accept(job))
            self.jobs[job_id] = job
            self.bytes[job_id] = [data for data, _ in payload]
            self.number += 1
        else:
            with pytest.raises(EngineError, match="accepted again"):
                self.loop.run_until_complete(self.journal.accept(job))
        spool.discard()

    @rule(job_id=IDS, number=st.integers(0, 3), text=st.text(max_size=5))
    def part(self, job_id: str, number: int, text: str) -> None:
        job = self.jobs.get(job_id)
        call = self.journal.part(job_id, number, part_proof(text))
        if job is None or job.state.ended or number >= len(job.partitions):
            with pytest.raises(EngineError):
                self.loop.run_until_complete(call)
            return
        self.loop.run_until_complete(call)
        proof = text.encode()
        job.partitions[number] = Partition(
            number, "cpu", 10.0, 12.0, proof, {"prove": 1.5}, b"public " + proof
        )

    @rule(job_id=IDS, state=st.sampled_from([State.DONE, State.FAILED, State.CANCELLED]),
          text=st.text(max_size=9))  # fmt: skip
    def end(self, job_id: str, state: State, text: str) -> None:
        job = self.jobs.get(job_id)
        self.now += 1
        outcome = Outcome(state, text.encode(), b"", "code", text, {"total": self.now})
        call = self.journal.end(job_id, outcome, ended=self.now)
        if job is None or job.state.ended:
            with pytest.raises(EngineError):
                self.loop.run_until_complete(call)
            return
        self.loop.run_until_complete(call)
        job.state, job.ended, job.outcome = state, self.now, outcome

    @rule(age=st.integers(0, 3))
    def expire(self, age: int) -> None:
        before = self.now - age
        old = [key for key, job in self.jobs.items() if job.state.ended and job.ended < before]
        assert self.journal.expire(before) == len(old)
        for key in old:
            del self.jobs[key]

    @rule()
    def reopen(self) -> None:
        self.journal.close()
        self.journal = Journal(self.folder)

    @precondition(lambda self: hasattr(self, "journal"))
    @invariant()
    def same(self) -> None:
        recovered = self.journal.recover()
        assert recovered.next_number == self.number
        alive = sorted((j for j in self.jobs.values() if not j.state.ended), key=lambda j: j.number)
        assert [j.number for j in recovered.jobs] == [j.number for j in alive]
        for got, job in zip(recovered.jobs, alive, strict=True):
            assert got == job
            assert [bytes(p.view()) for p in got.request.payload] == self.bytes[job.id]
        ended = sorted((j for j in self.jobs.values() if j.state.ended), key=lambda j: -j.ended)
        assert [view.number for view in self.journal.recent(10)] == [j.number for j in ended]
        for key in ("a", "b", "c", "d"):
            got_outcome = self.journal.outcome(key)
            assert (got_outcome[2] if got_outcome else None) == self.outcome(key)
        files = {p.path for j in alive for p in j.request.payload if p.path is not None}
        assert set((self.folder / "payloads").iterdir()) == files

    def teardown(self) -> None:
        if hasattr(self, "journal"):
            self.journal.close()
            self.loop.close()
            shutil.rmtree(self.folder)


TestModel = Model.TestCase
TestModel.settings = settings(
    max_examples=15,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
