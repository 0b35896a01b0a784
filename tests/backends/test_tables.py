"""Tables of multiples against the native core; sums over them against sums without."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from circuits import tangle
from cuzk import _core
from cuzk.backends.cpu import CpuBackend
from cuzk.backends.cuda import CudaBackend
from cuzk.backends.cuda.digits import select, sort_digits
from cuzk.backends.cuda.machine import Memory
from cuzk.backends.cuda.sums import start_sum
from cuzk.backends.cuda.tables import table_bytes, tabulate
from cuzk.backends.cuda.windows import WindowPlan, choose_plan
from cuzk.curves import Curve
from cuzk.errors import KernelError
from cuzk.groth16 import BELLMAN, SNARKJS
from cuzk.prover import prove, reside
from cuzk.prover.resident import workload
from cuzk.setup import Secrets, insecure_setup
from cuzk.setup.scalars import multiples
from cuzk.vectors import Points, Scalars, Words
from emulator import EmulatedMachine


def put(machine: EmulatedMachine, array: NDArray[Any]) -> Memory:
    memory = machine.alloc(max(array.nbytes, 1))
    machine.upload(memory, np.ascontiguousarray(array))
    return memory


def some_points(curve: Curve, group: str, n: int) -> Points:
    """Different multiples of the generator; infinity at 2."""
    logs = [0 if i == 2 else pow(5, 3 * i + 1, curve.r) for i in range(n)]
    return multiples(Scalars.from_ints(curve, logs, montgomery=True), group, 1)


def some_scalars(curve: Curve, n: int) -> Scalars:
    edges = [0, 1, curve.r - 1, curve.r // 2, curve.r // 2 + 1, 2**128]
    return Scalars.from_ints(curve, (edges + [pow(7, 9 * i + 2, curve.r) for i in range(n)])[:n])


def expected_sum(points: Points, scalars: Words, index: NDArray[np.uint32] | None = None) -> Words:
    out = np.empty((1, points.words.shape[1]), np.uint64)
    curve, words = points.curve.name, np.ascontiguousarray(points.words)
    _core.msm(curve, points.group, words, scalars, index, out, 1)
    return out


@pytest.mark.parametrize("group", ["g1", "g2"])
@pytest.mark.parametrize("sets", [1, 7])
def test_tables_hold_multiples(curve: Curve, group: str, sets: int) -> None:
    machine, n = EmulatedMachine(), 5
    points = some_points(curve, group, n)
    plan = WindowPlan.of(curve, 9, sets=sets)
    assert plan.tables == -(-29 // sets)
    memory = tabulate(machine, curve, group, put(machine, points.words), n, plan)
    found = np.empty((plan.tables, n, points.words.shape[1]), np.uint64)
    assert memory.nbytes == found.nbytes == table_bytes(curve, group, n, plan)
    machine.download(memory, found)
    for table in range(plan.tables):
        factor = Scalars.from_ints(curve, [pow(2, table * 9 * plan.sets, curve.r)]).words
        expected = np.empty_like(points.words)
        _core.scale_points(curve.name, group, points.words, factor, expected, 1)
        assert np.array_equal(found[table], expected)


@pytest.mark.parametrize(("width", "sets"), [(9, 1), (9, 2), (12, 1), (13, 3), (13, 19), (16, 1)])
def test_sums_over_tables(curve: Curve, width: int, sets: int) -> None:
    machine, n = EmulatedMachine(), 45
    points, scalars = some_points(curve, "g1", n), some_scalars(curve, n)
    plan = WindowPlan.of(curve, width, sets=sets)
    tables = tabulate(machine, curve, "g1", put(machine, points.words), n, plan)
    digits = sort_digits(
        machine, curve, put(machine, scalars.words), n, plan, montgomery=False, bit_reversed=False
    )
    total = start_sum(machine, curve, "g1", tables, digits)()
    assert np.array_equal(total, expected_sum(points, scalars.words))


def test_selected_rows_stay_in_their_tables(curve: Curve) -> None:
    """The witness has more wires than the query, which has its own order of rows."""
    machine, wires = EmulatedMachine(), 40
    chosen = np.array([3, 4, 9, 17, 38], np.uint32)
    points, scalars = some_points(curve, "g1", len(chosen)), some_scalars(curve, wires)
    plan = WindowPlan.of(curve, 10, sets=2)
    tables = tabulate(machine, curve, "g1", put(machine, points.words), len(chosen), plan)
    row_of = np.full(wires, 2**32 - 1, np.uint32)
    row_of[chosen] = np.arange(len(chosen))
    memory = put(machine, scalars.words)
    mapped = put(machine, row_of)
    every = sort_digits(machine, curve, memory, wires, plan, montgomery=False, bit_reversed=False)
    kept = select(machine, curve, every, mapped, wires, stride=len(chosen))
    at_once = sort_digits(
        machine, curve, memory, wires, plan, montgomery=False, bit_reversed=False,
        row_of=mapped, stride=len(chosen),
    )  # fmt: skip
    expected = expected_sum(points, scalars.words, chosen)
    for digits in (kept, at_once):
        assert np.array_equal(start_sum(machine, curve, "g1", tables, digits)(), expected)


def test_plans_with_tables(curve: Curve) -> None:
    for n in (1 << 10, 1 << 20, 1 << 24):
        alone, shared = choose_plan(n, curve, 1.0), choose_plan(n, curve, 1.0, sets=1)
        assert alone.tables == 1
        assert alone.sets == alone.windows
        assert shared.sets == 1
        assert shared.width >= alone.width
        assert shared.cost(n, 1.0) < alone.cost(n, 1.0)
    with pytest.raises(KernelError, match="1 to 29 tables"):
        WindowPlan(alone.bits, 9, alone.bits // 9 + 1, 30)
    with pytest.raises(KernelError, match="less than 2\\^31 rows"):
        sort_digits(
            EmulatedMachine(), curve, Memory(0, 0, None), 1, WindowPlan.of(curve, 9, sets=1),
            montgomery=False, bit_reversed=False, stride=1 << 27,
        )  # fmt: skip


@pytest.mark.parametrize("recipe", [SNARKJS, BELLMAN])
def test_a_proof_over_tables_is_the_same(curve: Curve, recipe: str) -> None:
    circuit = tangle(curve, 4)
    matrices, witness = circuit.matrices(), circuit.witness()
    key = insecure_setup(
        matrices, Secrets(tau=0xACE, alpha=0xBEE, beta=0xCAFE, delta=0xD00D, gamma=0xFADE), recipe
    )
    machine = EmulatedMachine()
    device, cpu = CudaBackend(curve, machine), CpuBackend(curve, 1)
    planned = device.plan(workload(key, matrices, repeated=True))
    on_device, on_cpu = reside(key, matrices, device), reside(key, matrices, cpu)
    assert machine.used <= planned
    proofs = [
        prove(on_device, witness, device, 17, 19),
        prove(on_cpu, witness, cpu, 17, 19),
    ]
    assert sum(kernel == "multiply_points" for kernel, _, _ in machine.launches) > 5
    for part in ("a", "b", "c"):
        device_words, cpu_words = (getattr(proof, part).words for proof in proofs)
        assert np.array_equal(device_words, cpu_words)
