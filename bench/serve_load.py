"""Processes that the daemon is measured with: they read commands, a JSON object a line, and answer each with one.

    prove   blocking Prove calls from several threads          for SECONDS
    submit  SubmitProof and AwaitProof, several jobs on the way
    status  GetStatus every 10 ms, on a connection of its own
    push    large messages that are refused
    porep   PoReps of sparse sectors, as Curio asks for them
    bare    the Prover in this process, in a loop: what a daemon is compared with

Every one is ``python -m bench.serve_load KIND JSON``: the object has what it needs for all commands.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import grpc

from bench.serve_sectors import porep
from cuzk.errors import CuzkError
from cuzk.formats.snarkjs_json import proof_json, public_json
from cuzk.prover.session import Prover
from cuzk.server.client import Client
from cuzk.server.proving_pb2 import (
    GetStatusRequest,
    GetStatusResponse,
    ProofKind,
    SubmitProofRequest,
)

EVERY = 0.01  # seconds between two status calls
Answer = dict[str, Any]


class Load:
    """The other end: a process of one kind."""

    def __init__(self, kind: str, **given: object) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "bench.serve_load", kind, json.dumps(given)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._read()  # it is ready

    def ask(self, much: float) -> None:
        """Begin: seconds, or jobs."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{much}\n")
        self.process.stdin.flush()

    def answer(self) -> Answer:
        """Wait for what it did."""
        return self._read()

    def work(self, much: float) -> Answer:
        """Both."""
        self.ask(much)
        return self.answer()

    def _read(self) -> Answer:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"a client ended with status {self.process.wait()}")
        found: Answer = json.loads(line)
        return found

    def close(self) -> None:
        """End it."""
        self.process.kill()
        self.process.communicate()


@contextmanager
def load(kind: str, **given: object) -> Iterator[Load]:
    """With its end."""
    made = Load(kind, **given)
    try:
        yield made
    finally:
        made.close()


def until(end: float) -> Iterator[float]:
    """Times up to then, at least one: of a process that stood still meanwhile, too, something is measured."""
    while True:
        yield time.perf_counter()
        if time.perf_counter() >= end:
            return


def prove(given: Answer) -> Callable[[float], Answer]:
    """``flight`` calls at a time."""
    client, pool = Client(given["address"]), ThreadPoolExecutor(given["flight"])
    witness = Path(given["witness"]).read_bytes()

    def one(end: float) -> list[tuple[str, str]]:
        proofs = []
        for _ in until(end):
            result = client.prove_circuit(given["circuit"], witness)
            proofs.append((result.proof.decode(), result.public.decode()))
        return proofs

    def work(seconds: float) -> Answer:
        end = time.perf_counter() + seconds
        found = list(pool.map(one, [end] * given["flight"]))
        return {"proofs": [proof for each in found for proof in each]}

    return work


def submit(given: Answer) -> Callable[[float], Answer]:
    """``flight`` jobs are on their way; the oldest is waited for. With ``jobs``, commands say how many in all."""
    client = Client(given["address"])
    witness = Path(given["witness"]).read_bytes()
    counted = given.get("jobs", False)

    def work(much: float) -> Answer:
        end, jobs, proofs = time.perf_counter() + much, deque[str](), list[tuple[str, str]]()

        def more() -> bool:
            asked = len(proofs) + len(jobs)
            return asked < much if counted else not asked or time.perf_counter() < end

        while jobs or more():
            while len(jobs) < given["flight"] and more():
                jobs.append(client.submit_circuit(given["circuit"], witness).job)
            result = client.wait(jobs.popleft())
            proofs.append((result.proof.decode(), result.public.decode()))
        return {"proofs": proofs}

    return work


def bare(given: Answer) -> Callable[[float], Answer]:
    """What a worker does for a request, and nothing else."""
    prover = Prover(
        Path(given["key"]), device="cpu", threads=given["threads"], insecure_key=True,
        lanes=given.get("lanes"),
    )  # fmt: skip
    witness = Path(given["witness"])
    pool = ThreadPoolExecutor(given.get("lanes") or 1)

    def one(end: float) -> list[tuple[str, str]]:
        proofs = []
        for _ in until(end):
            result = prover.prove(witness)
            proofs.append((proof_json(result.proof).decode(), public_json(result.public).decode()))
        return proofs

    def work(seconds: float) -> Answer:
        end = time.perf_counter() + seconds
        found = list(pool.map(one, [end] * (given.get("lanes") or 1)))
        return {"proofs": [proof for each in found for proof in each]}

    return work


def status(given: Answer) -> Callable[[float], Answer]:
    """Milliseconds of every call."""
    call = grpc.insecure_channel(given["address"]).unary_unary(
        "/cuzk.v1.ProvingEngine/GetStatus",
        request_serializer=GetStatusRequest.SerializeToString,
        response_deserializer=GetStatusResponse.FromString,
    )
    call(GetStatusRequest())

    def work(seconds: float) -> Answer:
        end, times = time.perf_counter() + seconds, []
        for began in until(end):
            call(GetStatusRequest())
            times.append(1e3 * (time.perf_counter() - began))
            time.sleep(max(0.0, EVERY - (time.perf_counter() - began)))
        return {"milliseconds": times}

    return work


def push(given: Answer) -> Callable[[float], Answer]:
    """Garbage of ``bytes`` bytes, as a witness or as a C1."""
    client, garbage = Client(given["address"]), bytes(given["bytes"])
    if given["field"] == "witness":
        message = SubmitProofRequest(
            proof_kind=ProofKind.CIRCUIT, circuit_id=given["circuit"], witness=garbage
        )
    else:
        message = SubmitProofRequest(
            proof_kind=ProofKind.POREP_SEAL_COMMIT, registered_proof=5, vanilla_proof=garbage
        )
    del garbage

    def work(seconds: float) -> Answer:
        end, said = time.perf_counter() + seconds, deque[str]()
        for _ in until(end):
            try:
                client.prove(message)
            except CuzkError as error:
                said.append(f"{type(error).__name__}: {error}")
        return {"refused": list(said)}

    return work


KINDS = {
    "prove": prove,
    "submit": submit,
    "status": status,
    "push": push,
    "porep": porep,
    "bare": bare,
}


def main() -> None:
    work = KINDS[sys.argv[1]](json.loads(sys.argv[2]))
    print("{}", flush=True)
    with suppress(KeyboardInterrupt):
        for line in sys.stdin:
            began, cpu = time.perf_counter(), time.process_time()
            answer = work(float(line))
            spent = {"wall": time.perf_counter() - began, "cpu": time.process_time() - cpu}
            print(json.dumps({**answer, **spent}), flush=True)


if __name__ == "__main__":
    main()
