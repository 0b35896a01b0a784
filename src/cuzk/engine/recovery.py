"""What an earlier daemon left in the journal: unfinished jobs go on, with the partitions that are proved."""

from __future__ import annotations

from cuzk.engine.admission import Admission
from cuzk.engine.catalogue import PartProof
from cuzk.engine.endings import Endings
from cuzk.engine.job import Job
from cuzk.engine.jobs import Live
from cuzk.engine.placement import impossible
from cuzk.engine.state import LOG, State, quoted
from cuzk.errors import NotReady

GONE = "accepted before a restart, and not in the configuration any more"


def recover(state: State, admission: Admission, endings: Endings) -> int:
    """Take up all of it; a job that cannot be proved here any more fails with the reason. The next job's number."""
    recovered = state.journal.recover()
    for view in reversed(state.journal.recent(state.policy.shown)):
        endings.show(view)
    circuits = {entry.id: entry.fault for entry in state.catalogue.entries()}
    for job in recovered.jobs:
        live = admission.take_up(job, _proved(job))
        LOG.info("recovered %s with %d of %d partitions", quoted(job.id), len(live.proved), len(job.partitions))  # fmt: skip
        _expect_provable(state, endings, live, fault=circuits.get(job.circuit, GONE))
    return recovered.next_number


def _expect_provable(state: State, endings: Endings, live: Live, *, fault: str) -> None:
    job = live.job
    if fault:
        endings.fail(live, NotReady(f"{job.circuit}: {fault}"))
        return
    error = impossible(state, job.circuit, critical=live.critical, payload_bytes=job.request.nbytes)
    if error is not None:
        endings.fail(live, error)


def _proved(job: Job) -> dict[int, PartProof]:
    return {
        part.number: PartProof(part.proof, part.milliseconds, part.worker, public=part.public)
        for part in job.partitions
        if part.proof is not None
    }
