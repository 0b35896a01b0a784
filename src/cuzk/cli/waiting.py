"""A person or a script waits for a job: a bar on a terminal, the files when the proof is there."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any

from cuzk.cli.terminal import answer, one_line, progress, say
from cuzk.errors import CuzkError, DeadlineExceeded, Unavailable
from cuzk.formats.source import write_together
from cuzk.server.client import Client, ProofResult

TURN = 0.5  # seconds between two looks at a job, with a bar
NAMES = {"public": "proof.json", "": "proof.bin"}


class Interrupted(CuzkError):
    """A wait was interrupted; the job goes on."""

    code = "interrupted"
    exit_status = 130


def wait_for(client: Client, job: str, timeout: float | None, *, quiet: bool) -> ProofResult:
    """The job's proof, or the reason why there is none; how to come back is said where the wait ends before the job."""
    again = f"`cuzk await {one_line(job)}` waits for it again"
    try:
        with progress("waiting", quiet=quiet) as bar:
            if bar is None:
                return client.wait(job, timeout)
            return _with_bar(client, job, timeout, bar)
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted; {job} goes on: {again}") from None
    except Unavailable as lost:
        raise Unavailable(f"{lost}; {again}") from None


def _with_bar(
    client: Client, job: str, timeout: float | None, bar: Callable[[str, float], None]
) -> ProofResult:
    left = float("inf") if timeout is None else timeout
    while left > 0:
        found = client.poll(job, min(TURN, left))
        if found is not None:
            return found
        left -= TURN
        for view in client.status()["jobs"]:
            if view["id"] == job:
                bar(*_done(view))
    raise DeadlineExceeded(f"{job}: not done after {timeout:g} s; it goes on")


def _done(job: dict[str, Any]) -> tuple[str, float]:
    """What a bar shows of a job: its place, or how many of its partitions are proved."""
    done, total = proved(job), job["partitions_total"]
    if job["place"] >= 0 and not done:
        return f"{job['place']} before it", 0.0
    return f"{job['state']} {done}/{total}", done / max(1, total)


def proved(job: dict[str, Any]) -> int:
    """How many of a job's partitions are."""
    return sum(part["state"] == "done" for part in job["partitions"])


def outputs(output: Path | None, public: Path | None) -> dict[str, Path]:
    """What may be written: the files that were named, else those of either kind of job."""
    proofs = [output] if output else [Path(name) for name in NAMES.values()]
    named = {"-o" if output else f"-o {path}": path for path in proofs}
    return {**named, "--public": public or Path("public.json")}


def write_result(
    result: ProofResult, output: Path | None, public: Path | None, *, as_json: bool
) -> None:
    """The proof as it came, and a circuit's public signals; then what it took."""
    proof = output or Path(NAMES["public" if result.public else ""])
    files: dict[str | PathLike[str], list[bytes]] = {proof: [result.proof]}
    written = {"proof": str(proof)}
    if result.public:
        signals = public or Path("public.json")
        files[signals] = [result.public]
        written["public"] = str(signals)
    write_together(files)
    if as_json:
        answer(
            {"job": result.job, **written, "milliseconds": result.milliseconds}, [], as_json=True
        )
        return
    spent = ", ".join(f"{name} {count} ms" for name, count in result.milliseconds.items())
    say(f"{one_line(result.job)}: {spent}; {', '.join(written.values())} written", error=True)
