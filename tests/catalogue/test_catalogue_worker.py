"""The catalogue where it is used: a copy of it in a worker's process."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from files import files
from made_posts import RANDOMNESS, made_sector
from own_files import own_files
from served import catalogue_of, circom, filecoin, request, witness_request

from cuzk.engine.process import ProcessWorker
from cuzk.errors import FormatError, UnsatisfiedError
from cuzk.filecoin.registered import registered
from cuzk.formats.snarkjs_json import read_verification_key
from cuzk.load import load_proof, load_public
from cuzk.verifier import verify

WINDOW = registered("post", "StackedDrgWindow2KiBV1")


def test_circuits_of_both_kinds_in_one_worker(tmp_path: Path) -> None:
    made = files("bn254")
    catalogue = catalogue_of(
        circom("c", made.zkey, circuit=made.r1cs),
        filecoin("window-2KiB", insecure_key=True),
        circom("gone", tmp_path / "none.zkey"),
        parameters=own_files("window-2KiB"),
    )
    blob = made_sector(WINDOW, 5).blob
    post = request("window-post", {"registered_proof": 5, "randomness": RANDOMNESS}, blob)

    async def work() -> None:
        worker = ProcessWorker("cpu", "cpu", catalogue, threads=2)
        await worker.start()
        try:
            assert ", " in worker.health().title
            for name, slots in (("c", 2), ("window-2KiB", 1)):
                loaded = await worker.load(name)
                assert (loaded.tier, loaded.slots) == ("hot", slots)
                estimated = catalogue.needs(name, "cpu")
                assert loaded.needs.key["host"] <= estimated.key["host"]
                assert loaded.needs.partition == estimated.partition
            with pytest.raises(FormatError, match=r"none.zkey: expected a .zkey or .params file"):
                await worker.load("gone")
            good = witness_request("c", made.wtns)
            await worker.check(good)
            with pytest.raises(
                FormatError, match=r"^witness: expected a .wtns file, found an empty"
            ):
                await worker.check(witness_request("c", b""))
            assert await worker.prepare("c", good) == 128
            part = await worker.prove("c", "r", 0)
            whole = await worker.finish("c", "r", [part])
            signals = load_public(whole.public, "bn254")
            assert verify(read_verification_key(made.vk), signals, load_proof(whole.proof, "bn254"))
            await worker.prepare("c", witness_request("c", made.false_witness))
            with pytest.raises(UnsatisfiedError, match=r"^witness: constraint 0 of 2 is not"):
                await worker.prove("c", "r", 0)
            await worker.check(post)
            await worker.prepare("window-2KiB", post)
            part = await worker.prove("window-2KiB", "r", 0)
            assert await worker.finish("window-2KiB", "r", [part])
            assert len(part.proof) == 192
            await worker.forget("r")
            await worker.unload("c")
        finally:
            await worker.close()

    asyncio.run(work())
