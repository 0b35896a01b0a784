"""A case passes on right backends and stops at a wrong one; its clocks and stages count what they say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from cuzk.backends import Backend, Buffer
from cuzk.backends.cpu import CpuBackend
from cuzk.backends.cuda import CudaBackend
from cuzk.backends.cuda.machine import Machine, Unit
from cuzk.bench.clocks import DeviceClock, Figure, Meter, ProcessorClock, clock_of, done
from cuzk.bench.inputs import KINDS
from cuzk.bench.msm import MsmCase
from cuzk.bench.ntt import NttCase
from cuzk.bench.prove import ProveCase
from cuzk.bench.rows import Case
from cuzk.bench.stages import TimedMachine, staged
from cuzk.bench.synthetic import RECIPES, dense, synthetic_key
from cuzk.curves import BLS12_381, BN254, Curve
from cuzk.errors import DeviceUnavailable, KernelError, ProofError
from cuzk.r1cs import SparseMatrix
from cuzk.vectors import Points, Scalars
from emulator import EmulatedMachine
from reference import ReferenceBackend


@pytest.mark.parametrize("backend", [CpuBackend(BLS12_381, 2), ReferenceBackend(BN254)])
@pytest.mark.parametrize("kind", KINDS)
def test_msm(backend: Backend, kind: str) -> None:
    (row,) = MsmCase("g1", 5, kind).run(backend, 2, 1)
    assert (row.bench, row.curve, row.device) == ("msm", backend.curve.name, backend.name)
    shown = row.as_dict()
    assert (shown["group"], shown["log_n"], shown["scalars"], shown["reps"]) == ("g1", 5, kind, 2)
    assert shown["wall_ms"]["least"] <= shown["wall_ms"]["median"] <= shown["wall_ms"]["most"]


@pytest.mark.parametrize("backend", [CpuBackend(BN254, 1), ReferenceBackend(BLS12_381)])
@pytest.mark.parametrize("coset", [False, True])
def test_ntt(backend: Backend, coset: bool) -> None:
    rows = NttCase(5, coset).run(backend, 2, 1)
    suffix = " coset" if coset else ""
    assert [row.fields["order"] for row in rows] == ["nr" + suffix, "rn" + suffix]
    with_core = "every value by the native core" in rows[0].checked
    assert with_core == (backend.name != "cpu")


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("verify_to", [5, 4])
def test_prove(curve: Curve, recipe: str, verify_to: int) -> None:
    (row,) = ProveCase(recipe, 5, verify_to).run(CpuBackend(curve, 1), 1, 1)
    assert row.checked.startswith("verified by pairings" if verify_to == 5 else "A, B, C against")
    assert {"evaluate", "quotient", "commit", "commit.b_g2", "assemble"} <= set(row.parts)


def test_prove_by_the_reference() -> None:
    """Synthetic keys against arithmetic on Python integers."""
    ProveCase("bellman", 4, 0).run(ReferenceBackend(BN254), 1, 1)


class Faulty(CpuBackend):
    """Wrong in one verb, from its ``after``-th call on."""

    name = "faulty"

    def __init__(self, curve: Curve, verb: str, after: int = 0) -> None:
        super().__init__(curve, 1)
        self._verb, self._left = verb, after

    def _strike(self, verb: str) -> bool:
        self._left -= verb == self._verb
        return verb == self._verb and self._left < 0

    def start_msm(
        self, bases: Buffer, scalars: Buffer, wires: object = None
    ) -> Callable[[], Points]:
        found = self.msm(bases, scalars, wires)
        if self._strike("msm"):
            found = Points(self.curve, bases.kind, np.zeros_like(found.words))
        return done(found)

    def ntt(self, values: Buffer, root: int, *, inverse: bool = False, shift: int = 1) -> Buffer:
        result = super().ntt(values, root, inverse=inverse, shift=shift)
        if self._strike("ntt"):
            data: Any = result.data
            data.words[-1, 0] ^= 1
        return result


@pytest.mark.parametrize("after", [0, 2])
def test_a_wrong_sum_stops_it(curve: Curve, after: int) -> None:
    """In the first run, and in the last."""
    with pytest.raises(KernelError, match=r"faulty: msm .* g2 2\^4, ones scalars: .* found None"):
        MsmCase("g2", 4, "ones").run(Faulty(curve, "msm", after), 2, 1)


@pytest.mark.parametrize(
    ("after", "message"), [(0, "at 0x.* the polynomial is"), (1, "found another")]
)
def test_a_wrong_transform_stops_it(curve: Curve, after: int, message: str) -> None:
    """The forward one by its polynomial, the inverse by not coming back."""
    with pytest.raises(KernelError, match=message):
        NttCase(4).run(Faulty(curve, "ntt", after), 1, 1)


@pytest.mark.parametrize(("verify_to", "error"), [(4, ProofError), (0, KernelError)])
@pytest.mark.parametrize("verb", ["msm", "ntt"])
def test_a_wrong_proof_stops_it(verify_to: int, error: type[Exception], verb: str) -> None:
    with pytest.raises(error, match=r"faulty: proof BN254 snarkjs 2\^4"):
        ProveCase("snarkjs", 4, verify_to).run(Faulty(BN254, verb), 1, 1)


@pytest.mark.parametrize("log_n", [4, 7])
def test_the_dense_circuit(curve: Curve, log_n: int) -> None:
    """Satisfied, by integers; it fills its domain; no value repeats; the public one is the last."""
    matrices, witness = dense(curve, log_n, 1)
    assert (matrices.rows, matrices.log_domain, matrices.public) == (1 << log_n, log_n, 1)
    w = witness.ints()
    assert len(w) == matrices.wires == len(set(w))
    assert w[0] == 1
    if matrices.c is None:
        pytest.fail("the circuit has a C")

    def at(matrix: SparseMatrix, row: int) -> int:
        return sum(c * w[i] for c, i in matrix.row(row)) % curve.r

    for row in range(matrices.constraints):
        assert at(matrices.a, row) * at(matrices.b, row) % curve.r == at(matrices.c, row)
    assert matrices.c.row(matrices.constraints - 1) == [(1, 1)]
    assert [matrices.a.row(matrices.constraints + s) for s in (0, 1)] == [[(1, 0)], [(1, 1)]]
    assert matrices.b.rows == matrices.c.rows == matrices.constraints


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_synthetic_key_has_the_shape_of_a_real_one(recipe: str) -> None:
    from cuzk.bench.prove import real_key

    matrices, _ = dense(BN254, 4, 1)
    real, made = real_key(matrices, recipe, 1), synthetic_key(matrices, recipe, 1).key
    for name in ("a", "b_g1", "b_g2", "l"):
        ours, theirs = getattr(made, name), getattr(real, name)
        assert list(ours.wires) == list(theirs.wires)
        assert ours.points.words.shape == theirs.points.words.shape
    assert made.h.words.shape == real.h.words.shape
    assert (made.log_domain, made.generator, made.wires) == (
        real.log_domain,
        real.generator,
        real.wires,
    )


def test_the_meter(monkeypatch: pytest.MonkeyPatch) -> None:
    """A device's work ends with what was queued, a CPU's with the result."""
    now = [0.0]
    monkeypatch.setattr("cuzk.bench.clocks.time.perf_counter", lambda: now[0])
    monkeypatch.setattr("cuzk.bench.clocks.time.process_time", lambda: 2 * now[0])
    machine = EmulatedMachine()
    monkeypatch.setattr(machine, "mark", lambda: now[0])

    def queue() -> Callable[[], str]:
        def wait() -> str:
            now[0] += 2.0
            return "result"

        now[0] += 1.0
        return wait

    for clock, work in ((ProcessorClock(), 6000.0), (DeviceClock(machine), 1000.0)):
        meter = Meter(clock)
        assert meter.run("name", queue) == "result"
        times = meter.times("name")
        assert times.wall.median == 3000.0
        assert times.work.median == work
        assert times.as_dict()[f"{clock.measures}_ms"]["median"] == work
    assert Figure.of([3.0, 1.0, 2.0]) == (2.0, 1.0, 3.0)


@pytest.mark.parametrize(
    ("case", "kernels"),
    [
        (MsmCase("g1", 3), {"accumulate_slices", "sum_lines", "sum_bits", "fetch"}),
        (MsmCase("g1", 3, points="pinned"), {"accumulate_slices", "sum_lines", "fetch"}),
        (MsmCase("g2", 3, "witness", "pageable", "deferred"), {"accumulate_slices", "sum_lines"}),
        (NttCase(4), {"divide_pass"}),
        (ProveCase("bellman", 4, 0), {"sparse_rows", "pointwise", "write_selected"}),
    ],
)
def test_cases_on_a_gpu(case: Case, kernels: set[str]) -> None:
    """Emulated: device time, and the stages of the last sample once more on a machine that counts them."""
    backend = CudaBackend(BN254, EmulatedMachine(), threads=1)
    assert isinstance(clock_of(backend), DeviceClock)
    row = case.run(backend, 1, 1)[0]
    assert (row.device, row.stages) == ("cuda:emulated", {})
    assert row.as_dict()["device_ms"]["median"] > 0
    again = case.run(staged(backend, 1), 1, 1)[0]
    assert kernels <= set(again.stages)
    assert "first_not_canonical" not in again.stages or case.__class__ is ProveCase
    assert sum(ms for _, ms in again.stages.values()) <= again.times.wall.most
    lines = again.lines()
    assert [line for line in lines if line.endswith("  " + max(kernels))]


def test_a_cpu_copies_no_points() -> None:
    with pytest.raises(DeviceUnavailable, match="cpu: points are resident: only a GPU copies them"):
        MsmCase("g1", 3, points="pinned").run(CpuBackend(BN254, 1), 1, 1)


def test_pages_that_are_not_pinned_are_not_measured() -> None:
    machine = EmulatedMachine()
    machine.pinnable = False
    backend = CudaBackend(BN254, machine, threads=1)
    with pytest.raises(KernelError, match="msm: expected pinned points: points in host memory"):
        MsmCase("g1", 8, points="pinned").run(backend, 1, 1)


def test_stages_of_a_cpu() -> None:
    with pytest.raises(DeviceUnavailable, match="stages: expected a GPU, found cpu"):
        staged(CpuBackend(BN254, 1), 1)


def test_a_gpu_without_events_is_refused() -> None:
    """Processor time is never taken for a device's."""

    class Blind(CpuBackend):
        name = "cuda:7"

    with pytest.raises(KernelError, match="cuda:7: expected a machine with events"):
        clock_of(Blind(BN254, 1))


def test_stages_of_a_machine(curve: Curve) -> None:
    """Every launch and copy is counted under its name, and is still done."""
    machine = EmulatedMachine()
    assert isinstance(machine, Machine)
    staged, n = TimedMachine(machine), 40
    words = Scalars.from_ints(curve, range(n), montgomery=True).words
    x, y = (staged.alloc(words.nbytes) for _ in range(2))
    staged.upload(x, words)
    staged.fill(y, 0)
    for _ in range(3):
        staged.launch(Unit("vector.cu", curve), "pointwise", 1, 32, x, 0, 0, 0, y, n)
    out = np.empty_like(words)
    staged.download(y, out)
    np.testing.assert_array_equal(out, words)
    totals = staged.totals()
    assert {name: count for name, (count, _) in totals.items()} == {
        "upload": 1,
        "fill": 1,
        "pointwise": 3,
        "download": 1,
    }
    assert all(ms >= 0 for _, ms in totals.values())
    assert staged.totals() == {}
