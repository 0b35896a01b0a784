"""A job of several partitions whose worker is killed between them: what was proved is kept."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from made_posts import RANDOMNESS, made_sector
from own_files import own_files, params_file
from twice import Twice, begun

from cuzk.catalogue import Catalogue
from cuzk.config import CircuitSettings, FilecoinSettings
from cuzk.engine.engine import Engine
from cuzk.engine.job import Outcome
from cuzk.engine.journal import Journal
from cuzk.engine.policy import EnginePolicy
from cuzk.engine.process import ProcessWorker
from cuzk.engine.request import Payload, Priority, Request
from cuzk.engine.snapshot import JobView
from cuzk.filecoin.registered import registered
from cuzk.filecoin.statement import PostStatement, Sector
from cuzk.filecoin.verify import check_proof
from cuzk.formats.bellman import read_vk
from cuzk.verifier import Verifier
from proof_files import EQUATION

WINDOW = registered("post", "StackedDrgWindow2KiBV1_2")
SOON = 120.0


async def until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + SOON
    while not condition():
        assert time.monotonic() < end
        await asyncio.sleep(0.005)


async def killed_in_the_second(
    catalogue: Twice, request: Request, place: Path
) -> tuple[JobView, Outcome | None]:
    (place / "state").mkdir(mode=0o700)
    journal = Journal(place / "state")
    worker = ProcessWorker("cpu", "cpu", catalogue, threads=2)
    engine = Engine(catalogue, [worker], journal, EnginePolicy(lanes=1))
    try:
        await engine.start()
        await engine.submit(request)
        await until(lambda: [number for number, _ in begun(place)] == [0, 1])
        os.kill(begun(place)[1][1], signal.SIGKILL)
        await until(lambda: len(begun(place)) == 3)
        (place / "go").touch()
        return await engine.result(request.id, SOON)
    finally:
        await engine.stop()
        journal.close()


def test_proved_partitions_outlive_their_worker(tmp_path: Path) -> None:
    """Partition 0 is proved once, partition 1 begun twice, by two processes; the whole verifies (faults: 6)."""
    sectors = made_sector(WINDOW, 5), made_sector(WINDOW, 9)
    settings = CircuitSettings(
        id="window-2KiB", kind="filecoin", key=params_file("window-2KiB"), insecure_key=True
    )
    catalogue = Twice(Catalogue([settings], FilecoinSettings()), tmp_path)
    request = Request(
        id="wdpost-1000-0-[7 7 7 7 7 7 7 7]",
        kind="window-post",
        priority=Priority.HIGH,
        fields={"registered_proof": WINDOW.number, "miner_id": 1000, "randomness": RANDOMNESS},
        payload=tuple(Payload.of(sector.blob) for sector in sectors),
    )
    view, outcome = asyncio.run(killed_in_the_second(catalogue, request, tmp_path))
    assert (view.message, [number for number, _ in begun(tmp_path)]) == ("", [0, 1, 1])
    first, again = (process for number, process in begun(tmp_path) if number == 1)
    assert first != again
    assert outcome is not None
    (path,) = own_files("window-2KiB").glob("*.vk")
    verifier = Verifier(read_vk(path), insecure_key=True, threads=2)
    stated = [
        PostStatement(WINDOW, RANDOMNESS, tuple(Sector(s.number, s.comm_r) for s in chosen))
        for chosen in (sectors, sectors[1:])
    ]
    parts = outcome.proof[:192], outcome.proof[192:]
    for statement, own, other in zip(stated, parts, parts[::-1], strict=True):
        assert check_proof(verifier, statement, own) == ""
        assert check_proof(verifier, statement, other) == EQUATION
