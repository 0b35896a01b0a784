"""Where a circuit can be proved at all, were nothing else there; and the scheduler's view, made from the state."""

from __future__ import annotations

from cuzk.engine.catalogue import Needs
from cuzk.engine.fit import added, never_fits
from cuzk.engine.state import State
from cuzk.engine.view import View
from cuzk.errors import CuzkError, OutOfMemory


def impossible(
    state: State, circuit: str, *, critical: bool, payload_bytes: int = 0
) -> CuzkError | None:
    """Why no worker that lives can ever prove a circuit, in numbers; None where one can, or none lives now."""
    reason: CuzkError | None = None
    for station in state.stations.values():
        if not station.alive:
            continue
        device = station.worker.device
        needs = state.need(circuit, device)
        if isinstance(needs, CuzkError):
            reason = reason or needs
            continue
        whole = Needs(needs.key, added(needs.partition, {"host": payload_bytes}))
        headroom = {} if critical else state.policy.headroom
        room = state.overhead.room()
        memory = never_fits(whole, room, headroom)
        if not memory:
            return None
        need = added(whole.key, whole.partition)[memory]
        limit = room[memory] - headroom.get(memory, 0)
        taken = state.overhead.taken(memory)
        beside = f" without the {taken} that processes and other programs take" if taken else ""
        reason = OutOfMemory(
            f"{circuit}: its key, a request and a partition need {need} bytes of {memory}, the limit is {limit}{beside}: "
            f"raise it in the settings, or prove on another machine"
        )
    return reason


def heads(state: State) -> int:
    """How many jobs of a group decide: more than can be begun at a time."""
    return 8 + (state.policy.prepared + 2) * len(state.stations)


def view(state: State, now: float) -> View:
    """What decides, at this moment. A circuit that is not to be tried on a device is not named for it."""
    jobs = tuple(
        waiting
        for live in state.jobs.candidates(heads(state), state.policy.losses)
        if (waiting := live.waiting()) is not None
    )
    stations = state.stations.values()
    circuits = {job.circuit for job in jobs}
    needs = {
        (circuit, station.worker.device): need
        for station in stations
        for circuit in circuits | station.keys.keys()
        if not station.blocked(circuit, now)
        and isinstance(need := state.need(circuit, station.worker.device), Needs)
    }
    return View(
        jobs=jobs,
        sites=tuple(station.site(state.policy.lanes) for station in stations),
        free=state.ledgers.free(),
        needs=needs,
    )
