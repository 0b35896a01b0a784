"""What an earlier daemon left in the journal: unfinished jobs go on, with the partitions that are proved."""

from __future__ import annotations

from cuzk.engine.admission import Admission
from cuzk.engine.away import Away
from cuzk.engine.catalogue import PartProof
from cuzk.engine.endings import Endings
from cuzk.engine.job import Job
from cuzk.engine.state import LOG, State, quoted
from cuzk.errors import NotReady

GONE = "accepted before a restart, and not in the configuration any more"


def recover(state: State, admission: Admission, endings: Endings, away: Away) -> int:
    """Take up all of it. A job whose circuit is not in the configuration any more, or that can never fit, fails with the
    reason; one whose circuit is NOT READY waits for it. The next job's number."""
    recovered = state.journal.recover()
    for view in reversed(state.journal.recent(state.policy.shown)):
        endings.show(view)
    for job in recovered.jobs:
        live = admission.take_up(job, _proved(job))
        LOG.info("recovered %s with %d of %d partitions", quoted(job.id), len(live.proved), len(job.partitions))  # fmt: skip
    known = {entry.id for entry in state.catalogue.entries()}
    for circuit in dict.fromkeys(job.circuit for job in recovered.jobs):
        if circuit not in known:
            for live in state.jobs.waiting_for(circuit):
                endings.fail(live, NotReady(f"{circuit}: {GONE}"))
        elif not away.hold(circuit):
            away.expect_provable(circuit)
    return recovered.next_number


def _proved(job: Job) -> dict[int, PartProof]:
    return {
        part.number: PartProof(part.proof, part.milliseconds, part.worker, public=part.public)
        for part in job.partitions
        if part.proof is not None
    }
