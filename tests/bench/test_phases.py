"""``cuzk bench phases``: what is measured is right, on the CPU and an emulated GPU; a wrong proof stops it."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from cuzk.backends import Backend, Buffer
from cuzk.backends.cpu import CpuBackend
from cuzk.backends.cuda import CudaBackend
from cuzk.backends.cuda.transfers import Transfers
from cuzk.bench.callers import Callers
from cuzk.bench.clocks import Figure
from cuzk.bench.compare import HEADING, STEPS, cells, compared
from cuzk.bench.figures import summary, tables
from cuzk.bench.phases import JudgedProver, Way, measure
from cuzk.bench.prove import R, S
from cuzk.bench.subject import Subject
from cuzk.bench.synthetic import RECIPES, dense, synthetic_key
from cuzk.bench.turns import Series, Turn
from cuzk.cli import main
from cuzk.curves import BN254
from cuzk.errors import DeviceUnavailable, KernelError, ProofError
from cuzk.load import load_witness
from cuzk.timeline import Span
from cuzk.vectors import Points, Scalars
from cuzk.verifier import Verifier
from emulator import EmulatedMachine
from emulator.driver import FakeDriver, install


def gpu() -> Backend:
    return CudaBackend(BN254, EmulatedMachine(), threads=1)


@pytest.mark.parametrize("recipe", RECIPES)
def test_apart(recipe: str) -> None:
    """Queries that share no memory hold the same points as those that do."""
    matrices, _ = dense(BN254, 4, 1)
    one, other = (synthetic_key(matrices, recipe, 1, apart=a).key for a in (False, True))
    found = []
    for name in ("a", "b_g1", "b_g2", "l"):
        ours: Points = getattr(one, name).points
        found.append(getattr(other, name).points)
        np.testing.assert_array_equal(found[-1].words, ours.words)
    np.testing.assert_array_equal(other.h.words, one.h.words)
    np.testing.assert_array_equal(other.vk.ic.words, one.vk.ic.words)
    arrays = [points.words for points in (*found, other.h)]
    assert not any(np.shares_memory(a, b) for i, a in enumerate(arrays) for b in arrays[:i])


@pytest.mark.parametrize("verify_to", [4, 0])
@pytest.mark.parametrize("recipe", RECIPES)
def test_ways_on_the_cpu(recipe: str, verify_to: int) -> None:
    """Every recipe, real and synthetic keys; with the caller's evaluations; from two threads; from a file."""
    subject = Subject.of(BN254, recipe, 4, verify_to, 1)
    ways = [
        Way("plain"),
        Way("evaluated", evaluations=True),
        Way("two", lanes=2, witness="file"),
    ]
    series = measure(subject, ways, CpuBackend(BN254, 1), proofs=2, turns=1, threads=1)
    assert [one.name for one in series] == ["plain", "evaluated", "two"]
    for one in series:
        shown = one.as_dict()
        assert (shown["proofs"], shown["turns"], shown["device"]) == (2, 1, "cpu")
        assert shown["checked"].startswith("every" if verify_to else "A, B, C")
        assert {"evaluate", "quotient", "commit.b_g2", "assemble", "verify"} <= set(
            shown["host_ms"]
        )
        assert shown["device_idle_percent"] is None
        assert shown["proofs_per_minute"] > 0


def test_what_callers_bring(tmp_path: Path) -> None:
    """The witness, in memory of each lane's own or a file; A w, B w, C w by Python integers."""
    subject = Subject.of(BN254, "bellman", 4, 4, 1)
    callers = Callers(subject, tmp_path, 1)
    first, second = callers.witness(0, "scalars"), callers.witness(1, "scalars")
    assert isinstance(first, Scalars)
    assert isinstance(second, Scalars)
    assert not np.shares_memory(first.words, second.words)
    assert callers.witness(0, "scalars") is first
    path = callers.witness(1, "file")
    assert isinstance(path, Path)
    assert load_witness(path).ints() == first.ints() == subject.witness.ints()
    found, matrices = callers.evaluations(0), dense(BN254, 4, 1)[0]
    w = first.ints()
    for vector, matrix in ((found.a, matrices.a), (found.b, matrices.b), (found.c, matrices.c)):
        if vector is None or matrix is None:
            pytest.fail("bellman's keys take all three")
        rows = [sum(c * w[i] for c, i in matrix.row(row)) % BN254.r for row in range(matrix.rows)]
        assert vector.ints() == rows + [0] * (matrices.rows - matrix.rows)
    assert callers.evaluations(1).a.ints() == found.a.ints()
    prepared = Callers(Subject.of(BN254, "prepared", 4, 4, 1), tmp_path, 1)
    assert prepared.evaluations(0).c is None


def test_ways_on_a_gpu() -> None:
    """Emulated: the key on it, one lane; in host memory, two lanes. What is copied is counted."""
    subject = Subject.of(BN254, "bellman", 4, 0, 1)
    ways = [Way("resident"), Way("streamed", Transfers(points="host"), 2, evaluations=True)]
    resident, streamed = measure(subject, ways, gpu(), proofs=2, turns=1, threads=1)
    for one, lanes in ((resident, 1), (streamed, 2)):
        shown = one.as_dict()
        assert (shown["device"], shown["proofs"], shown["turns"]) == ("cuda:emulated", 2, 1)
        assert (shown["lanes"], shown["lanes_used"]) == (lanes, lanes)
        assert {"evaluate", "quotient", "commit"} == set(shown["device_ms"])
        assert list(shown["sums_ms"]) == ["a", "b_g1", "b_g2", "l", "h"]
        assert 0 < sum(shown["sums_ms"].values()) <= shown["wall_ms"]["most"]
        assert 0 <= shown["device_idle_percent"] < 100
    key, vector = subject.key, 8 * BN254.fr_words
    points = [key.a.points, key.b_g1.points, key.b_g2.points, key.l.points, key.h]
    wires, rows = len(subject.witness), 1 << key.log_domain
    copied = [
        sum(kind.nbytes for kind in one.copies() if kind.name == "copy to device")
        for one in (resident, streamed)
    ]
    assert copied[0] == 2 * vector * wires
    assert copied[1] == 2 * (vector * (wires + 3 * rows) + sum(p.words.nbytes for p in points))


def made(name: str, per_minute: float, device: dict[str, float]) -> Series:
    report = SimpleNamespace(device_milliseconds=device, total_ms=7.0)
    spans = [Span("cuda:0 compute", "extend", 0.0, 30.0 / per_minute)]
    sums = [Span("cuda:0 compute", "sum g1", n, n + n / 1e3) for n in range(5)]
    result: Any = SimpleNamespace(report=report, spans=sums)
    return Series(name, {}, [Turn(0.0, 60.0 / per_minute, [result], spans)])


def test_rows_of_the_comparison() -> None:
    """Each against the one that it changes."""
    device = {"evaluate": 1.0, "quotient": 2.0, "commit": 4.0}
    series = [made(step.way.name, 10.0 + n, device) for n, step in enumerate(STEPS)]
    rows = compared(series)
    assert [row["name"] for row in rows] == [step.way.name for step in STEPS]
    assert (rows[0]["against"], rows[0]["gain"]) == (None, None)
    assert rows[1]["gain"] == pytest.approx(11 / 10, abs=1e-4)
    assert rows[4]["gain"] == pytest.approx(14 / 13, abs=1e-4)
    assert rows[7]["gain"] == pytest.approx(17 / 14, abs=1e-4)
    assert {(row["h_phase_ms"], row["device_ms"], row["wall_ms"]) for row in rows} == {(3, 7, 7)}
    assert {row["device_idle_percent"] for row in rows} == {50.0}
    shown = cells(rows)
    assert shown[0] == list(HEADING)
    assert shown[1] == [
        "1 " + rows[0]["name"], "3.00", *(f"{n}.00" for n in range(5)), "7.00", "7.00", "50.0", "10.0", "",
    ]  # fmt: skip
    assert [line[-1] for line in shown[2:]] == [
        "1.10x of 1", "1.20x of 1", "1.30x of 1", "1.08x of 4", "1.07x of 5", "1.07x of 6", "1.21x of 5",
    ]  # fmt: skip


@pytest.mark.slow
@pytest.mark.usefixtures("emulated")
def test_the_comparison(capsys: pytest.CaptureFixture[str]) -> None:
    """All of it at the smallest size."""
    status, out, _ = bench(capsys, "--log", "4", "--verify-to", "0", "--compare")
    lines = out.splitlines()
    assert status == 0
    assert [line.split()[0] for line in lines[3:11]] == list("12345678")
    assert lines[11].startswith("Published for")
    assert lines[12].startswith("checked: A, B, C of every proof against logarithms")


def test_steps_change_one_thing_at_a_time() -> None:
    """Or are both of two changes."""
    for step in STEPS:
        if step.against is None:
            continue
        before, after = STEPS[step.against].way, step.way
        changed = {
            name
            for name in vars(after.transfers)
            if getattr(before.transfers, name) != getattr(after.transfers, name)
        }
        changed |= {"lanes"} if before.lanes != after.lanes else set()
        assert len(changed) == (2 if step.way.name == "both" else 1), step.way.name
    assert all(step.way.evaluations and not step.way.repeated for step in STEPS)


class Faulty(CpuBackend):
    """Its transforms are wrong from the ``after``-th on."""

    name = "faulty"
    left = 0

    def extend(self, values: Sequence[Buffer], root: int, shift: int) -> list[Buffer]:
        found: list[Any] = super().extend(values, root, shift)
        self.left -= 1
        if self.left < 0:
            found[0].data.words[-1, 0] ^= 1
        return found


@pytest.mark.parametrize("verify_to", [4, 0])
@pytest.mark.parametrize("after", [0, 3])
def test_a_wrong_proof_stops_it(verify_to: int, after: int) -> None:
    """Before anything is timed, or in the first turn; also where the CPU would have made up for it."""
    subject, backend = Subject.of(BN254, "snarkjs", 4, verify_to, 1), Faulty(BN254, 1)
    backend.left = after
    with pytest.raises(KernelError, match="faulty: plain: expected the first proof to be right"):
        measure(subject, [Way("plain")], backend, proofs=3, turns=1, threads=1)


def test_an_interrupt_ends_all_lanes() -> None:
    """No further proof is begun and no thread is left, whichever thread is interrupted."""
    subject, begun = Subject.of(BN254, "snarkjs", 4, 4, 1), list[int]()

    class Interrupted(CpuBackend):
        name = "interrupted"

        def extend(self, values: Sequence[Buffer], root: int, shift: int) -> list[Buffer]:
            begun.append(1)
            if len(begun) == 4:
                raise KeyboardInterrupt
            return super().extend(values, root, shift)

    with pytest.raises(KeyboardInterrupt):
        measure(
            subject, [Way("two", lanes=2)], Interrupted(BN254, 1), proofs=50, turns=1, threads=1
        )
    assert len(begun) <= 5
    assert not [t for t in threading.enumerate() if t.name.startswith("lane")]


def test_a_proof_that_verifies_nowhere_is_compared() -> None:
    """Under a synthetic key the pairings say no; other blinding makes another proof."""
    subject = Subject.of(BN254, "bellman", 4, 0, 1)
    with JudgedProver(subject, Way("plain"), CpuBackend(BN254, 1), 1) as prover:
        proof = prover.prove_insecure(subject.witness, R, S).proof
        assert [proof.a.affine(), proof.b.affine(), proof.c.affine()] == subject.expected
        public = subject.witness[1:2].ints()
        assert not Verifier(subject.key.vk, insecure_key=True).verify(public, proof)
        with pytest.raises(ProofError, match="all proofs failed"):
            prover.prove_insecure(subject.witness, R + 1, S)


def test_streaming_needs_a_gpu() -> None:
    subject = Subject.of(BN254, "bellman", 4, 0, 1)
    ways = [Way("streamed", Transfers(points="host"))]
    with pytest.raises(DeviceUnavailable, match="streamed: expected a GPU, found cpu"):
        measure(subject, ways, CpuBackend(BN254, 1), proofs=1, turns=1, threads=1)


def result(total: float, device: dict[str, float], notes: list[str]) -> Any:
    host = {"load": 9.0, "quotient": total / 2, "total": total}
    return SimpleNamespace(
        report=SimpleNamespace(
            device="cuda:0",
            lanes=1,
            total_ms=total,
            milliseconds=host,
            device_milliseconds=device,
            transfers=notes,
        ),
        spans=[],
    )


def test_figures_of_turns() -> None:
    """Medians over proofs, proofs a minute of the middle turn, idle time over all turns."""
    compute, copy = "cuda:0 compute", "cuda:0 copy"
    turns = [
        Turn(
            t,
            t + length,
            [result(10.0 * length, {"quotient": length}, [f"note {n}", "same"])],
            [
                Span(compute, "quotient", t, t + 1),
                Span(copy, "points", t, t + 0.5, {"bytes": 10**9, "how": "pinned"}),
                Span(compute, "sum", t + 1, t + 1.25, {"batch": 0}),
                Span(compute, "sum", t + 1.5, t + 2, {"batch": 1}),
            ],
        )
        for n, (t, length) in enumerate([(0.0, 2.0), (10.0, 4.0), (20.0, 5.0)])
    ]
    series = Series("way", {"curve": "bn254", "lanes": 1}, turns)
    assert series.wall == Figure(40.0, 20.0, 50.0)
    assert series.per_minute == 15.0
    assert series.phases() == {"quotient": 20.0}
    assert series.phases(device=True) == {"quotient": 4.0}
    assert series.device_idle == pytest.approx(1 - 3 * 1.75 / 11)
    shown = series.as_dict()
    assert shown["sums_ms"] is None
    assert shown["notes"] == ["note 0", "same", "note 1", "note 2"]
    assert [(use["track"], use["ms"], use["work_ms"]) for use in shown["streams"]] == [
        (compute, 11e3, 5250.0), (copy, 11e3, 1500.0),
    ]  # fmt: skip
    assert [(c["count"], c["bytes"], c["gb_per_s"]) for c in shown["copies"]] == [(3, 3 * 10**9, 2.0)]  # fmt: skip
    assert [(b["count"], b["between_ms"]) for b in shown["batches"]] == [(6, 750.0)]
    lines = [line for each in tables(series) for line in each]
    assert ["quotient", "20.00", "4.00"] in lines
    assert ["cuda:0 copy points pinned", "3", "3000.0", "1500.00", "2.0", "1500.00"] in lines
    assert ["cuda:0", "6", "3000.00", "750.00"] in lines
    halved = Series("way", {"lanes": 2}, turns)
    assert summary(halved).startswith("in 1 of 2 lanes, 40.00 ms")
    assert summary(series).startswith("40.00 ms a proof (20.00 to 50.00), 15.0 proofs a minute, ")


def bench(capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(["bench", "phases", "--curve", "bn254", "--threads", "1", "--proofs", "1", "--turns", "1", *options])  # fmt: skip
    out, err = capsys.readouterr()
    return int(ended.value.code or 0), out, err


@pytest.fixture
def emulated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cuzk.cli.phases.open_asked", lambda *_: gpu())


@pytest.mark.usefixtures("emulated")
def test_command_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Numbers of lanes side by side, and a trace."""
    trace = tmp_path / "trace.json"
    status, out, err = bench(
        capsys, "--log", "4", "--verify-to", "0", "--lanes", "1,2", "--json", "--trace", str(trace)
    )
    assert (status, err) == (0, "")
    found = json.loads(out)
    one, two = found["rows"]
    assert [(row["transfers"]["points"], row["lanes"]) for row in (one, two)] == [
        ("auto", 1), ("auto", 2),
    ]  # fmt: skip
    (ratio,) = found["ratios"]
    assert (ratio["name"], ratio["over"]) == ("points auto, 2 lanes", "points auto, 1 lane")
    assert ratio["ratio"] == pytest.approx(
        two["proofs_per_minute"] / one["proofs_per_minute"], rel=1e-2
    )
    assert found["place"]["device"] == "cuda:emulated, emulator"
    names = {event["name"] for event in json.loads(trace.read_text())["traceEvents"]}
    assert {"thread_name", "copy to device"} <= names


@pytest.mark.slow
def test_command_with_a_driver(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Opened as a GPU is, and streams that run late."""
    driver = install(FakeDriver(), monkeypatch)
    status, out, err = bench(
        capsys, "--log", "4", "--lanes", "2", "--points", "host", "--device", "cuda", "--json"
    )
    assert (status, err) == (0, "")
    (row,) = json.loads(out)["rows"]
    assert row["device"] == "cuda:0"
    assert {copy["track"].split()[0] for copy in row["copies"]} >= {"cuda:0"}
    tracks = {stream["track"]: stream for stream in row["streams"]}
    assert tracks["cuda:0 compute"]["work_ms"] > 0
    assert driver.calls


def test_command_as_lines(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = bench(capsys, "--log", "4,5", "--device", "cpu", "--evaluations")
    lines = out.splitlines()
    assert status == 0
    assert lines[1] == "bn254 bellman 2^4"
    assert "proofs a minute" in lines[2]
    assert lines[3].split() == ["phase,", "ms", "host", "device"]
    assert "bn254 bellman 2^5" in lines
    assert lines.count("checked: every proof verified by pairings") == 2


def test_compare_on_a_cpu(capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = bench(capsys, "--compare", "--device", "cpu", "--log", "4")
    assert status == 3
    assert err == "cuzk: --compare: expected a GPU, found cpu: it compares ways to copy to one\n"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--log", "3"], "--log: expected 4 at least, found 3"),
        (["--log", "29"], "expected at most 28"),
        (["--lanes", "0"], "expected lanes like 2 or 1,2, at most 4, found '0'"),
        (["--lanes", "1,x"], "expected lanes like 2 or 1,2"),
        (["--lanes", "5"], "at most 4"),
        (["--points", "disk"], "expected auto or host, or both, found 'disk'"),
        (["--witness", "paper"], "'paper' is not one of"),
        (["--recipe", "none"], "'none' is not one of"),
        (["--compare", "--lanes", "2"], "--compare: its ways are fixed: leave out --lanes"),
        (["--compare", "--points", "host"], "leave out --points"),
        (["--compare", "--evaluations"], "leave out --evaluations"),
        (["--compare", "--tables"], "leave out --tables"),
        (["--trace", "/nowhere/trace.json"], "--trace /nowhere/trace.json: the directory"),
    ],
)
def test_refusals(options: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = bench(capsys, *options)
    assert (status, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1
