"""Many proofs in two lanes, points and vectors on their way all the time: they end at the memory that they began with.

And a process that is killed in the middle of a batch, whose memory the driver takes back.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from collections import Counter
from functools import partial
from pathlib import Path
from time import sleep

import numpy as np
import pytest
from given import SECRETS
from streaming import Proving, held_locks
from test_endurance import resident_bytes

from circuits import chain
from cuzk.backends.cuda import CudaBackend
from cuzk.backends.cuda.cuda_machine import CudaMachine
from cuzk.backends.cuda.machine import Machine
from cuzk.backends.cuda.transfers import Transfers
from cuzk.curves import BN254
from cuzk.prover import session
from cuzk.prover.report import STATUS
from cuzk.prover.session import Prover, Result
from cuzk.setup import insecure_setup
from cuzk.timeline import Timeline
from cuzk.vectors import Scalars
from cuzk.verifier import verify
from null_backend import TIMEOUT
from until import until

MIB = 1 << 20
KEPT = 200  # spans of a timeline: three proofs fill it
LANES = 2


@pytest.fixture(autouse=True)
def short_timelines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Full before anything is measured."""
    monkeypatch.setattr(session, "Timeline", partial(Timeline, kept=KEPT))


def objects() -> Counter[str]:
    """Of the project's kinds that are alive, but for what the stand-in for the driver keeps."""
    gc.collect()
    found = (type(each) for each in gc.get_objects())
    return Counter(kind.__name__ for kind in found if str(kind.__module__).startswith("cuzk"))


def on_threads(proofs: int, prove: partial[Result] | list[partial[Result]]) -> None:
    """So many, by as many threads as there are lanes, in turns of what is to be proved."""
    each = prove if isinstance(prove, list) else [prove]
    failures: list[BaseException] = []

    def work(lane: int) -> None:
        try:
            for i in range(proofs // LANES):
                result = each[(lane + i) % len(each)]()
                assert result.report.retries == 0
                assert result.report.device == "cuda:0"
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(k,), daemon=True) for k in range(LANES)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT * max(1, proofs // 5))
        assert not thread.is_alive()
    assert failures == []


def in_both_lanes(proving: Proving) -> None:
    """Two proofs in each, so that both have what stays with them."""
    both = threading.Barrier(LANES)

    def meet(name: str) -> None:
        if name == "verify":  # behind its turn, in its place
            both.wait(TIMEOUT)

    assert proving.prover
    proving.prover._on_phase = meet
    on_threads(4, partial(proving.prove))
    proving.prover._on_phase = None


@pytest.mark.parametrize("proofs", [8, pytest.param(200, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("points", "pinning"), [("host", "always"), pytest.param("host", "never", marks=pytest.mark.slow), pytest.param("auto", "always", marks=pytest.mark.slow)])  # fmt: skip
def test_memory_ends_where_it_began(
    proofs: int, points: str, pinning: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    proving = Proving(monkeypatch, lanes=LANES, points=points, pinning=pinning)
    in_both_lanes(proving)
    proving.driver.calls.clear()
    books, kinds = proving.books(), objects()
    resident = resident_bytes() if STATUS.exists() else 0
    on_threads(proofs, partial(proving.prove))
    proving.driver.calls.clear()
    assert books["registered"] == proving.books()["registered"]
    # which proof had which lane decides how long the slots of each became
    allowed = {name: n * (5 if name == "device" else 4) // 4 for name, n in books.items()}
    grown = {name: (books[name], n) for name, n in proving.books().items() if n > allowed[name]}
    assert not grown, grown
    more = {name: n for name, n in (objects() - kinds).items() if n > 8}  # of 8 proofs or of 200
    assert not more, more
    if STATUS.exists():
        assert resident_bytes() - resident < 8 * MIB
    assert held_locks() == []
    result = proving.expect_valid()
    assert result.report.lanes == LANES
    assert len(result.spans) <= KEPT
    proving.close()


def test_a_leak_would_show(monkeypatch: pytest.MonkeyPatch) -> None:
    """One page that stays locked, one block that nobody frees, one object of the project."""
    proving = Proving(monkeypatch)
    machine = proving.backend.machine if proving.backend else None
    assert isinstance(machine, CudaMachine)
    kinds, marks = objects(), [machine.mark() for _ in range(9)]
    assert {name for name, n in (objects() - kinds).items() if n > 8} == {"Mark"}
    pages = np.zeros(8192, np.uint8)
    block, pin = machine.alloc(1000), machine.pin(pages)
    books, base = proving.books(), proving.base
    assert books["device"] == base["device"] + 1000
    assert books["registered"] >= base["registered"] + 4096
    assert books["events"] >= base["events"] + 9
    del block, pin, marks, machine
    proving.expect_nothing_left()
    proving.close()


ROWS = (1 << 12) - 4
WARM, PROOFS = 20, 200


def provers(machine: Machine) -> list[Prover]:
    """One with its key in host memory, one with its key on the device."""
    made = insecure_setup(chain(BN254, ROWS).matrices(), SECRETS, threads=2)
    return [
        Prover(
            made,
            device=CudaBackend(
                BN254, machine.beside(points), transfers=Transfers(points=points, pinning="always")
            ),
            insecure_key=True,
            lanes=LANES,
        )
        for points in ("host", "auto")
    ]


def verified(prover: Prover, witness: Scalars) -> Result:
    result = prover.prove(witness)
    assert verify(prover.key.vk, result.public, result.proof, insecure_key=True)
    return result


@pytest.mark.gpu
def test_two_hundred_proofs_on_a_gpu(gpu_machine: Machine) -> None:
    """Streamed and resident in turns: device memory, locked pages and the process end as they began."""
    assert isinstance(gpu_machine, CudaMachine)
    machine, card, witness = gpu_machine, gpu_machine.card, chain(BN254, ROWS).witness()
    for prover in provers(
        machine
    ):  # what the driver keeps: code of kernels, their stacks (130 MiB)
        with prover:
            verified(prover, witness)
    del prover
    gc.collect()
    card.queues.finish()
    card.trim()
    before = machine.free_bytes()
    streamed, resident = provers(machine)
    with streamed, resident:
        work = [partial(verified, streamed, witness), partial(verified, resident, witness)]
        on_threads(WARM, work)

        def books() -> tuple[int, int, int]:
            gc.collect()
            card.queues.finish()
            return machine.free_bytes(), card.pins.nbytes, resident_bytes()

        free, pinned, process = books()
        kinds = objects()
        assert pinned > 0
        on_threads(PROOFS, work)
        free_after, pinned_after, process_after = books()
        assert pinned_after == pinned
        assert (
            free - free_after < 4 * MIB
        )  # slots of a lane may have grown; 20 KiB a proof would show
        assert process_after - process < 16 * MIB
        more = {name: n for name, n in (objects() - kinds).items() if n > 8}
        assert not more, more
        assert held_locks() == []
    del streamed, resident, work
    gc.collect()
    card.queues.finish()
    card.trim()
    assert card.pins.nbytes == 0
    assert before - machine.free_bytes() < 16 * MIB


CHILD = """
import sys
from test_transfer_soak import ROWS, provers
from circuits import chain
from cuzk.backends.cuda.device import open_machine
from cuzk.curves import BN254

streamed, _ = provers(open_machine(0, BN254))
witness = chain(BN254, ROWS).witness()
while True:
    print("proves", flush=True)
    streamed.prove(witness)
"""


def child_in_mid_proof(proof: int) -> subprocess.Popen[str]:
    """A process that has begun so many proofs."""
    tests = Path(__file__).parents[1]
    path = os.pathsep.join([str(tests), str(tests / "prover"), *sys.path])
    child = subprocess.Popen([sys.executable, "-c", CHILD], env={**os.environ, "PYTHONPATH": path}, stdout=subprocess.PIPE, text=True)  # fmt: skip
    assert child.stdout
    for _ in range(proof):
        assert child.stdout.readline() == "proves\n", "the child ended by itself"
    return child


@pytest.mark.gpu
@pytest.mark.parametrize("milliseconds", [0, 2, 5])
def test_a_process_killed_in_mid_batch(milliseconds: int, gpu_machine: Machine) -> None:
    """SIGKILL: its memory on the device comes back by itself, and a proof here is valid."""
    before = gpu_machine.free_bytes()
    child = child_in_mid_proof(5)
    try:
        sleep(milliseconds / 1000)
        held = before - gpu_machine.free_bytes()
    finally:
        child.kill()
        child.wait(TIMEOUT)
        if child.stdout:
            child.stdout.close()
    assert child.returncode == -9
    assert held > 64 * MIB  # a context alone has more
    until(lambda: before - gpu_machine.free_bytes() <= 8 * MIB)
    streamed, resident = provers(gpu_machine)
    with streamed, resident:
        witness = chain(BN254, ROWS).witness()
        for prover in (streamed, resident):
            result = verified(prover, witness)
            assert (result.report.device, result.report.retries) == ("cuda:0", 0)
