"""The next witness made while a device proves: order, memory, faults, interrupts.

Proofs are made once and handed out by a script in the Prover's place; those of one test are made on a null device.
"""

from __future__ import annotations

import gc
import signal
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from functools import cache
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest
from made_partitions import CIRCUIT, FourPartitions, both
from own_files import circuit, params_file

import cuzk.filecoin.prove as proving
from cuzk.errors import CuzkError, KernelError, UnsatisfiedError
from cuzk.filecoin.key_sizes import proving_bytes, witness_bytes
from cuzk.filecoin.overlap import Overlap, Phases
from cuzk.filecoin.prove import CircuitProver, WholeProof
from cuzk.filecoin.witness.assign import assign
from cuzk.prover.ready import Ready
from cuzk.prover.session import Result
from cuzk.vectors import Scalars
from null_backend import TIMEOUT, Event, install

LIMIT = "memory, the limit is "


class Witnesses:
    """Counts those that are made, and those that are there; ``script`` is called as each begins."""

    def __init__(self) -> None:
        self.begun = self.made = 0
        self.most = 0
        self.threads: set[str] = set()
        self.alive: set[int] = set()
        self.script: Callable[[int], None] = lambda _: None
        self._changed = threading.Condition()

    def __call__(self, *arguments: Any, **options: Any) -> Scalars:
        number, self.begun = self.begun, self.begun + 1
        self.threads.add(threading.current_thread().name)
        self.script(number)
        made = assign(*arguments, **options)
        self.alive.add(number)
        weakref.finalize(made.words, self.alive.discard, number)
        with self._changed:
            self.most = max(self.most, len(self.alive))
            self.made += 1
            self._changed.notify_all()
        return made

    def await_made(self, wanted: int) -> None:
        with self._changed:
            if not self._changed.wait_for(lambda: self.made >= wanted, TIMEOUT):
                raise TimeoutError(f"witness {wanted} is not made")


@pytest.fixture
def witnesses(monkeypatch: pytest.MonkeyPatch) -> Witnesses:
    proofs()  # not counted
    counted = Witnesses()
    monkeypatch.setattr(proving, "assign", counted)
    return counted


@cache
def proofs() -> dict[int, Result]:
    """Of both partitions, by the second public input, in which their sectors differ."""
    found = {}
    with opened(device="cpu") as prover:
        for number in (0, 1):
            ready = prover.stage(both(), number).ready
            found[mark(ready)] = prover.prover.prove(ready)
    assert len(found) == 2
    return found


def mark(ready: Ready) -> int:
    return hash(tuple(ready.public))


def opened(**options: Any) -> CircuitProver:
    chosen = {"insecure_key": True, "threads": 2, **options}
    return CircuitProver(circuit(CIRCUIT), params_file(CIRCUIT), **chosen)


class Scripted:
    """In a Prover's place: ``script(k)`` is called in the proof of the k-th witness, on its thread, whichever thread
    comes first."""

    def __init__(self, prover: CircuitProver, device: str) -> None:
        self.of = prover
        self.device = device
        self.script: Callable[[int], None] = lambda _: None
        self.threads: list[str] = []
        self._inner, self._made = prover._prover, count()
        self._numbers: dict[int, int] = {}
        """Of what is ready, by its id: held by nothing here."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    @property
    def standing(self) -> Any:
        return SimpleNamespace(device=self.device)

    def ready(self, witness: Scalars) -> Ready:
        made = self._inner.ready(witness)
        self._numbers[id(made)] = next(self._made)
        return made

    def prove(self, ready: Ready) -> Result:
        number = self._numbers.pop(id(ready))
        self.threads.append(threading.current_thread().name)
        for phase in ("evaluate", "commit", "verify"):
            self.of._phases(phase)
            if phase == "commit":
                self.script(number)
        return proofs()[mark(ready)]


@pytest.fixture
def scripted() -> Iterator[Scripted]:
    """On a GPU, as it says."""
    before = set(threading.enumerate())
    with opened(device="cpu") as prover:
        yield standing_on("cuda:0", prover)
    assert set(threading.enumerate()) == before


def standing_on(device: str, prover: CircuitProver) -> Scripted:
    inner = Scripted(prover, device)
    prover._prover = inner  # type: ignore[assignment]
    return inner


def prove(scripted: Scripted) -> WholeProof:
    return scripted.of.prove(both(FourPartitions))


def expect_nothing_held(scripted: Scripted, witnesses: Witnesses) -> None:
    gc.collect()
    assert witnesses.alive == set()
    assert [t.name for t in threading.enumerate() if t.name.startswith("proof")] == []
    witnesses.script = scripted.script = lambda _: None
    assert len(prove(scripted).data) == 768


def test_the_next_witness_is_made_while_a_proof_is_computed(
    scripted: Scripted, witnesses: Witnesses
) -> None:
    """Proof k ends after witness k + 1 was made; on one thread they would wait for ever."""
    scripted.script = lambda number: witnesses.await_made(min(number + 2, 4))
    found = prove(scripted)
    assert len(found.data) == 768
    assert witnesses.most == 2
    assert witnesses.threads == {"MainThread"}
    assert all(name.startswith("proof_") for name in scripted.threads)
    alone = [result.report.planned_bytes for result in proofs().values()]
    more = witness_bytes(circuit(CIRCUIT))
    assert {report.planned_bytes for report in found.reports} == {alone[0] + more}
    assert not any(LIMIT in note for report in found.reports for note in report.transfers)


def test_a_proof_that_is_made_holds_nothing() -> None:
    """When its result is there: a thread may stand still before it ends, and the next witness is made meanwhile."""

    class Holding:
        def __call__(self) -> int:
            assert begun.wait(TIMEOUT)
            return 7

    begun, held = threading.Event(), list[bool]()
    with Overlap[int](Phases(None), None) as overlap:
        proof = Holding()
        seen = weakref.ref(proof)
        overlap.begin(0, proof)
        del proof
        ((_, future),) = overlap._working
        future.add_done_callback(lambda _: held.append(seen() is not None))  # on its thread
        begun.set()
        assert overlap.take() == 7
    assert held == [False]


def test_on_one_lane_of_a_device(witnesses: Witnesses, monkeypatch: pytest.MonkeyPatch) -> None:
    """Proofs one after the other there, each beside the next witness; no sum of a proof is given before that is made."""
    device = install(monkeypatch)
    device.room, device.staged = 1, deque(maxlen=0)  # type: ignore[assignment]  # which holds none
    sums = count()

    def script(event: Event) -> None:
        if event.verb == "collect":
            witnesses.await_made(min(next(sums) // 5 + 2, 2))

    with opened(device="cuda") as prover:
        device.script = script
        found = prover.prove(both())
    assert next(sums) == 10
    assert len(found.data) == 384
    assert [report.device for report in found.reports] == ["cuda:0", "cuda:0"]
    gc.collect()
    assert (witnesses.alive, device.pinned) == (set(), set())


@pytest.mark.parametrize("how", ["limit", "machine", "cpu"])
def test_one_after_the_other(
    witnesses: Witnesses, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where memory has no room for two witnesses, which is said; and on a CPU, always."""
    shape = circuit(CIRCUIT)
    room = proving_bytes(shape) + witness_bytes(shape)
    if how == "machine":
        monkeypatch.setattr("cuzk.filecoin.key_sizes.installed_bytes", lambda: room - 1)
    with opened(device="cpu", memory=room - 1 if how == "limit" else None) as prover:
        scripted = standing_on("cpu" if how == "cpu" else "cuda:0", prover)
        found = prove(scripted)
    assert witnesses.most == 1
    assert set(scripted.threads) == {"MainThread"}
    said = {"limit": f"the limit is {room - 1};", "machine": f"this machine has {room - 1}"}
    for report in found.reports:
        notes = [n for n in report.transfers if n.startswith("each witness was made after")]
        assert [said[how] in note for note in notes] == [True] * (how != "cpu")


def test_room_for_two_by_the_byte(witnesses: Witnesses) -> None:
    shape = circuit(CIRCUIT)
    room = proving_bytes(shape) + witness_bytes(shape)
    with opened(device="cpu", memory=room) as prover:
        scripted = standing_on("cuda:0", prover)
        scripted.script = lambda number: witnesses.await_made(min(number + 2, 4))
        prove(scripted)
    assert witnesses.most == 2


def test_a_device_that_is_left(scripted: Scripted, witnesses: Witnesses) -> None:
    """From the second proof on the CPU makes them: no witness beside it."""

    def script(number: int) -> None:
        if number == 1:
            scripted.device = "cpu"
        begun[number] = witnesses.begun

    begun: dict[int, int] = {}
    scripted.script = script
    assert len(prove(scripted).data) == 768
    assert set(begun) == {0, 1, 2, 3}
    assert (begun[2], begun[3]) == (3, 4)


@pytest.mark.parametrize("error", [KernelError("cuda:0: lost"), KeyboardInterrupt()], ids=["error", "interrupt"])  # fmt: skip
@pytest.mark.parametrize("number", range(4))
def test_a_fault_in_a_proof(
    scripted: Scripted, witnesses: Witnesses, error: BaseException, number: int
) -> None:
    """Is what is raised, whichever proof it comes from; nothing is held, and the next task is proved."""

    def script(k: int) -> None:
        if k == number:
            raise error

    scripted.script = script
    with pytest.raises(type(error)) as caught:
        prove(scripted)
    assert caught.value is error
    expect_nothing_held(scripted, witnesses)


@pytest.mark.parametrize("number", range(4))
@pytest.mark.parametrize("error", [UnsatisfiedError("wrong"), KeyboardInterrupt()], ids=["error", "interrupt"])  # fmt: skip
def test_a_fault_in_a_witness(
    scripted: Scripted, witnesses: Witnesses, error: BaseException, number: int
) -> None:
    def script(k: int) -> None:
        if k == number:
            raise error

    witnesses.script = script
    with pytest.raises(type(error)) as caught:
        prove(scripted)
    assert caught.value is error
    expect_nothing_held(scripted, witnesses)


def test_the_error_of_the_partition_before_comes_first(
    scripted: Scripted, witnesses: Witnesses
) -> None:
    """Though the witness fails while the proof before it is still computed."""
    failed = threading.Event()

    def make(number: int) -> None:
        if number == 1:
            failed.set()
            raise UnsatisfiedError("partition 1: wrong")

    def compute(_: int) -> None:
        assert failed.wait(TIMEOUT)
        raise KernelError("partition 0: lost")

    witnesses.script, scripted.script = make, compute
    with pytest.raises(CuzkError, match="partition 0: lost"):
        prove(scripted)
    expect_nothing_held(scripted, witnesses)


def test_an_interrupt_of_the_caller(
    scripted: Scripted, witnesses: Witnesses, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Proofs on threads stop before their next phase, whatever they were to do after it."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    def script(_: int) -> None:
        witnesses.await_made(2)
        if first.acquire(blocking=False):
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)
        assert stopped.wait(TIMEOUT)

    first, stopped = threading.Lock(), threading.Event()
    shutdown = Overlap.__exit__

    def leave(overlap: Any, *error: Any) -> None:
        for run, _ in overlap._working:
            run.stopped = True
        stopped.set()
        shutdown(overlap, *error)

    monkeypatch.setattr(Overlap, "__exit__", leave)
    heard: list[str] = []
    monkeypatch.setattr(scripted.of._phases, "_on_phase", heard.append)
    before = signal.signal(signal.SIGUSR1, interrupt)
    scripted.script = script
    try:
        with pytest.raises(KeyboardInterrupt):
            prove(scripted)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert "commit" in heard
    assert "verify" not in heard
    expect_nothing_held(scripted, witnesses)


def test_partitions_and_phases_are_heard_in_order(witnesses: Witnesses) -> None:
    """Of the partition that began last alone, though the one after it is in work already."""
    heard: list[str] = []
    with opened(
        device="cpu", on_partition=lambda number: heard.append(str(number)), on_phase=heard.append
    ) as prover:
        scripted = standing_on("cuda:0", prover)
        scripted.script = lambda number: witnesses.await_made(min(number + 2, 4))
        prove(scripted)
        spans = prover.timeline.spans()
    numbers = [word for word in heard if word.isdigit()]
    assert numbers == ["0", "1", "2", "3"]
    assert heard[:6] == ["total", "0", "witness", "prove", "evaluate", "commit"]
    assert heard.count("witness") == 1
    assert heard[-1] == "verify"  # of the whole
    made = [span.facts["partition"] for span in spans if span.name == "witness"]
    assert made == [0, 1, 2, 3]
