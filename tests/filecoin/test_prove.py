"""From vanilla proofs to proofs that verify: 2 KiB WindowPoSt under a key made here."""

from __future__ import annotations

import json
import traceback
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from made_partitions import CIRCUIT, NEWER, both, stated
from made_posts import RANDOMNESS, MadeSector, made_sector
from made_sectors import PROVER, sealed
from own_files import circuit, own_files, params_file

import cuzk.filecoin.prove as proving
from bench import whole_proof
from cuzk.errors import (
    CircuitError,
    FormatError,
    InsecureKeyError,
    OutOfMemory,
    ProofError,
    UnsatisfiedError,
)
from cuzk.filecoin.c1 import C1
from cuzk.filecoin.openings import Openings
from cuzk.filecoin.own_keys import own_key
from cuzk.filecoin.parameters import Parameters
from cuzk.filecoin.prove import CircuitProver, WholeProof, prove
from cuzk.filecoin.registered import SEAL, RegisteredProof, registered
from cuzk.filecoin.statement import PostStatement, Sector
from cuzk.filecoin.task import Task, post_task, seal_task
from cuzk.filecoin.vanilla import read_post
from cuzk.filecoin.verify import check_proof, verify
from cuzk.filecoin.witness.assign import assign
from cuzk.formats.bellman import read_proof_bytes, read_vk
from cuzk.timeline import Span
from cuzk.verifier import Verifier
from proof_files import EQUATION

WINDOW = registered("post", "StackedDrgWindow2KiBV1")


def task_of(proof: RegisteredProof, *sectors: MadeSector, partition: int = 0) -> Task:
    statement = stated(proof, *sectors, partition=partition)
    return post_task(read_post([sector.blob for sector in sectors], proof), statement)


@cache
def sectors() -> tuple[MadeSector, MadeSector]:
    return made_sector(WINDOW, 5), made_sector(WINDOW, 9, 1)


@cache
def whole() -> WholeProof:
    return prove(
        circuit(CIRCUIT), task_of(WINDOW, *sectors()), params_file(CIRCUIT), insecure_key=True
    )


@cache
def verifier() -> Verifier:
    (path,) = own_files(CIRCUIT).glob("*.vk")
    return Verifier(read_vk(path), insecure_key=True, threads=2)


def test_the_files_have_their_published_sizes() -> None:
    sizes = {path.suffix: path.stat().st_size for path in own_files(CIRCUIT).iterdir()}
    assert sizes == {".params": 11_501_496, ".vk": 3_076}


def test_own_keys_are_known_as_insecure() -> None:
    (path,) = own_files(CIRCUIT).glob("*.vk")
    with pytest.raises(InsecureKeyError, match="delta = gamma"):
        Verifier(read_vk(path))
    with pytest.raises(InsecureKeyError, match="delta = gamma"):
        CircuitProver(circuit(CIRCUIT), params_file(CIRCUIT))


def test_a_proof_that_verifies() -> None:
    found, statement = whole(), stated(WINDOW, *sectors())
    assert len(found.data) == 192
    assert verify(verifier(), statement, found.data)
    (report,) = found.reports
    assert (report.constraints, report.public, report.domain) == (21_866, 22, 1 << 15)
    assert found.milliseconds.keys() == {"witness", "prove", "verify", "total"}
    assert check_proof(verifier(), statement, bytes(found.data)) == ""


def test_every_public_input_counts() -> None:
    proof, public = read_proof_bytes(whole().data), stated(WINDOW, *sectors()).inputs().ints()
    assert len(public) == 22
    for place in range(22):
        wrong = list(public)
        wrong[place] ^= 1
        assert verifier().check(wrong, proof) == EQUATION, place


def test_every_public_datum_counts() -> None:
    first, second = sectors()
    statement = stated(WINDOW, first, second)
    moved = (statement.sectors[0], replace(statement.sectors[1], number=10))
    others = [
        replace(statement, randomness=bytes(31) + b"\1"),
        replace(statement, sectors=moved),
        replace(statement, sectors=(replace(statement.sectors[0], comm_r=second.comm_r), moved[1])),
        replace(statement, sectors=statement.sectors[::-1]),
        replace(statement, sectors=statement.sectors[:1]),
        replace(statement, partition=1),
        replace(statement, proof=NEWER),
    ]
    for other in others:
        assert check_proof(verifier(), other, whole().data) == EQUATION, other


def test_damaged_bytes() -> None:
    statement, data = stated(WINDOW, *sectors()), whole().data
    for wrong, message in (
        (data[:-1], "expected 192 bytes .* found 191"),
        (data + data, "expected 192 bytes .* found 384"),
        (bytes([data[0] ^ 1]) + data[1:], "a: "),
    ):
        with pytest.raises(FormatError, match=message):
            check_proof(verifier(), statement, wrong)


def test_another_circuits_key(monkeypatch: pytest.MonkeyPatch) -> None:
    statement = PostStatement(
        registered("post", "StackedDrgWinning2KiBV1"), RANDOMNESS, (Sector(5, sectors()[0].comm_r),)
    )
    with pytest.raises(
        CircuitError, match="expected one with 132 public inputs, as winning-2KiB has, found 22"
    ):
        check_proof(verifier(), statement, whole().data)
    monkeypatch.setattr(proving, "constraint_system", None)  # its places are not looked for
    for name in ("winning-2KiB", "update-2KiB"):
        with pytest.raises(
            CircuitError,
            match=rf"\.params: ic: expected \d+ points, as {name} has, found 23: the key",
        ):
            CircuitProver(circuit(name), params_file(CIRCUIT))
    with pytest.raises(CircuitError, match=r"\.params: h: expected 65535 points.* found 32767"):
        CircuitProver(circuit("window-8MiB"), params_file(CIRCUIT))
    vk = params_file(CIRCUIT).with_suffix(".vk")
    with pytest.raises(FormatError, match=r"\.vk: expected a .params file, found a .vk"):
        CircuitProver(circuit(CIRCUIT), vk)


def test_the_benchmark(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    shape, folder, task = circuit(CIRCUIT), own_files(CIRCUIT), task_of(WINDOW, *sectors())
    steps = whole_proof.Steps()
    key = whole_proof.key_in_files(shape, Parameters(WINDOW.kind, WINDOW.shape), folder, 2, steps)
    other = stated(NEWER, *sectors())
    trace = tmp_path / "trace.json"
    whole_proof.measure(shape, task, other, key, steps, device="cpu", threads=2, trace=trace)
    shown = capsys.readouterr().out
    names = {event["name"] for event in json.loads(trace.read_bytes())["traceEvents"]}
    assert {"load", "witness", "check", "prove", "quotient"} <= names
    assert all(f"\n{name} " in f"\n{shown}" for name in ("load", "proof 0", "verify"))
    assert all(text in shown for text in (" witness ", " quotient ", "made by    cpu"))


def test_the_share_of_a_device() -> None:
    """Of two streams that compute, each moment once; waits, copies and the host's threads do not count."""
    spans = [
        Span("cuda:0 compute", "sum g1", 0.0, 3.0),
        Span("cuda:0 compute 2", "product", 2.0, 4.0),
        Span("cuda:0 compute", "sum g2", 6.0, 12.0),
        Span("cuda:0 compute", "wait for cuda:0 upload", 4.0, 6.0),
        Span("cuda:0 upload", "copy to device", 4.0, 6.0),
        Span("MainThread", "compute", 4.0, 6.0),
    ]
    assert whole_proof.busy(spans, 0.0, 10.0) == ", device busy 80.0%"
    assert whole_proof.busy(spans, 1.0, 5.0) == ", device busy 75.0%"
    assert whole_proof.busy(spans[-1:], 0.0, 10.0) == ""


@pytest.mark.parametrize(
    ("part", "message"),
    [(0, "partition 0: the proof does not verify"), (1, "verifies for another statement, too")],
)
def test_the_benchmark_of_a_wrong_proof(part: int, message: str) -> None:
    """Statements of the task and beside it, one wrong: the one that is proved, or the one that is not to be."""
    shape, task, steps = circuit(CIRCUIT), task_of(WINDOW, *sectors()), whole_proof.Steps()
    key = whole_proof.key_in_memory(shape, 2, steps)
    right, wrong = stated(WINDOW, *sectors()), stated(NEWER, *sectors())
    with CircuitProver(shape, key.proving, insecure_key=True, device="cpu") as prover:
        proof = prover.partition(task, 0)
    said = Task((wrong, right)[part], task.data)
    maker: Any = SimpleNamespace(partition=lambda *_: proof)
    verifier = Verifier(key.verifying, insecure_key=True)
    with pytest.raises(SystemExit, match=message):
        whole_proof.prove_partition(maker, said, right, 0, verifier, steps)


# Several partitions


def test_partitions_in_order() -> None:
    task = both()
    begun: list[int] = []
    phases: set[str] = set()
    with CircuitProver(
        circuit(CIRCUIT),
        params_file(CIRCUIT),
        insecure_key=True,
        on_partition=begun.append,
        on_phase=phases.add,
    ) as prover:
        found = prover.prove(task)
        spans = prover.timeline.spans()
    assert begun == [0, 1]
    witnesses = [span.facts for span in spans if span.name == "witness"]
    assert witnesses == [{"partition": 0}, {"partition": 1}]
    commits = [span.facts for span in spans if span.name == "commit"]
    assert commits == [{"partition": 0, "proof": 1}, {"partition": 1, "proof": 2}]
    assert {"witness", "commit", "verify"} <= phases
    assert len(found.reports) == 2
    data = found.data
    assert len(data) == 384
    assert check_proof(verifier(), task.statement, data) == ""
    swapped = data[192:] + data[:192]
    assert check_proof(verifier(), task.statement, swapped) == f"partition 0: {EQUATION}"
    twice = data[:192] * 2
    assert check_proof(verifier(), task.statement, twice) == f"partition 1: {EQUATION}"


def test_partitions_alone_and_together() -> None:
    """In any order, from several threads; the whole is what ``prove`` makes, verified."""
    task = both()
    arguments = (circuit(CIRCUIT), params_file(CIRCUIT))
    with CircuitProver(*arguments, insecure_key=True) as prover:
        with ThreadPoolExecutor(2) as pool:
            second, first = pool.map(lambda k: prover.partition(task, k), (1, 0))
        parts = [first.data, second.data]
        data = prover.whole(task, parts)
        assert data == b"".join(parts)
        assert len(data) == 384
        assert check_proof(verifier(), task.statement, data) == ""
        for number, part in enumerate((first, second)):
            assert part.milliseconds.keys() == {"witness", "prove"}
            assert {"witness", "prove", "commit", "verify"} <= {span.name for span in part.spans}
            assert {span.facts["partition"] for span in part.spans} == {number}
            assert part.report.constraints == 21_866
        with pytest.raises(ProofError, match=f"was withheld: partition 0: {EQUATION}"):
            prover.whole(task, parts[::-1])
        for wrong in (parts[:1], [*parts, parts[0]], [parts[0], parts[1][:-1]]):
            with pytest.raises(FormatError, match=r"expected 384 bytes .* found"):
                prover.whole(task, wrong)
        for number in (-1, 2):
            with pytest.raises(FormatError, match=f"partition: expected 0 to 1, found {number}"):
                prover.partition(task, number)
        other = Task(replace(stated(WINDOW, *sectors()), proof=registered("post", 0)), task.data)
        for call in (lambda: prover.partition(other, 0), lambda: prover.whole(other, parts)):
            with pytest.raises(CircuitError, match="expected its circuit winning-2KiB"):
                call()


# What is refused before anything is proved


def test_a_task_is_made_of_vanilla_proofs_that_hold() -> None:
    first, second = sectors()
    other = bytearray(first.blob)
    other[-104] ^= 1  # of the last sibling, behind which are the last index, comm_c and comm_r_last
    post = read_post([bytes(other), second.blob], WINDOW)
    third = made_sector(WINDOW, 12, 1)
    place = r"sector 0 \(number 5\): challenge 9 \(node \d+\): root that the path in tree R_last"
    with pytest.raises(UnsatisfiedError, match=place):
        post_task(post, stated(WINDOW, first, second))
    for sequence, statement, message in (
        ((second, first), stated(WINDOW, first, second), "^sector 0: sector_id: expected 5, found 9: give the vanilla proofs in the statement's order$"),
        ((first, third), stated(WINDOW, first, second), "^sector 1: sector_id: expected 9, found 12: the statement has no such sector$"),
        ((first,), stated(WINDOW, first, second), "expected 2 sectors, as the statement has, found 1"),
        ((first, second), stated(NEWER, first, second), "expected proofs of StackedDrgWindow2KiBV1_2"),
        ((first, second), replace(stated(WINDOW, first, second), randomness=None), "found challenges: who proves"),
    ):  # fmt: skip
        post = read_post([sector.blob for sector in sequence], WINDOW)
        with pytest.raises(FormatError, match=message):
            post_task(post, statement)
    post = read_post([first.blob, second.blob], WINDOW)
    wrong = replace(second, comm_r=first.comm_r)
    with pytest.raises(UnsatisfiedError, match=r"sector 1: comm_r: expected .* found"):
        post_task(post, stated(WINDOW, first, wrong))
    with pytest.raises(
        UnsatisfiedError, match=r"sector 0 \(number 5\): challenge 0: challenged node"
    ):
        task_of(WINDOW, first, second, partition=1)


# Seals of several partitions: non-interactive ones of 2 KiB have 13


@cache
def non_interactive() -> C1:
    return sealed(SEAL[15])


def reordered(c1: C1, order: list[int]) -> C1:
    """Partitions in another order."""

    def moved(paths: Openings) -> Openings:
        names = ("leaf", "siblings", "index", "root")
        return replace(paths, **{name: getattr(paths, name)[order] for name in names})

    arrays = {name: getattr(c1, name)[order] for name in ("nodes", "columns", "label_parents")}
    paths: dict[str, Any] = {
        name: moved(getattr(c1, name)) for name in ("data", "replica", "column_openings")
    }
    return replace(c1, **arrays, **paths)


def test_partitions_of_a_seal() -> None:
    task, shape = seal_task(non_interactive(), prover_id=PROVER), circuit("porep-2KiB")
    assert task.proof.partitions == 13
    for partition in (0, 12):
        wires = assign(shape, task.data(partition), threads=2)
        derived = task.statement.inputs(partition).words
        assert wires.words[1 : shape.inputs].tobytes() == derived.tobytes()


def test_swapped_partitions_of_a_c1() -> None:
    order = [0, 1, 5, 3, 4, 2, *range(6, 13)]
    assert seal_task(reordered(non_interactive(), list(range(13))))
    with pytest.raises(
        UnsatisfiedError, match=r"made.c1: partition 2: challenge \d: challenged node"
    ):
        seal_task(reordered(non_interactive(), order))


def test_memory_is_known_before(monkeypatch: pytest.MonkeyPatch) -> None:
    shape, large, key = circuit(CIRCUIT), circuit("window-32GiB"), params_file(CIRCUIT)
    with pytest.raises(
        OutOfMemory, match=r"window-2KiB: a proof needs \d+ bytes.* the limit is 1000"
    ):
        CircuitProver(shape, key, insecure_key=True, memory=1000)
    monkeypatch.setattr("cuzk.filecoin.key_sizes.installed_bytes", lambda: 1 << 35)
    with pytest.raises(
        OutOfMemory, match=r"window-32GiB: a proof needs 82074375128 bytes of memory, this"
    ):
        CircuitProver(large, key, insecure_key=True)
    with pytest.raises(
        OutOfMemory, match=r"window-32GiB: making a key needs 85656966360 bytes of memory"
    ):
        own_key(large)


def test_what_a_prover_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    task, winning = task_of(WINDOW, *sectors()), registered("post", 0)
    statement = stated(WINDOW, *sectors())
    with CircuitProver(circuit(CIRCUIT), params_file(CIRCUIT), insecure_key=True) as prover:
        with pytest.raises(
            CircuitError, match="expected its circuit winning-2KiB, found window-2KiB"
        ):
            prover.prove(Task(replace(statement, proof=winning), task.data))
        with pytest.raises(
            CircuitError, match="partition 0: public input 2: expected the one that"
        ) as caught:
            prover.prove(Task(replace(statement, partition=1), task.data))
        calls = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
        assert calls == ["test_what_a_prover_refuses"]  # others would hold the witness
        monkeypatch.setattr(proving, "check_proof", lambda *_: "partition 0: doubtful")
        with pytest.raises(ProofError, match="was withheld: partition 0: doubtful"):
            prover.prove(task)
