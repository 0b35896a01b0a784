"""Circuits that a Prover takes as placements: the same system as with all rows written out, and the same proofs."""

from __future__ import annotations

import weakref
from dataclasses import fields
from functools import cache

import numpy as np
import pytest
from made_posts import RANDOMNESS, made_sector
from own_files import circuit, params_file

import cuzk.filecoin.witness.system as systems
from cuzk.backends.cpu import CpuBackend
from cuzk.backends.cuda import CudaBackend
from cuzk.curves import BLS12_381
from cuzk.errors import UnsatisfiedError
from cuzk.filecoin.prove import CircuitProver
from cuzk.filecoin.registered import registered
from cuzk.filecoin.statement import PostStatement, Sector
from cuzk.filecoin.task import Task, post_task
from cuzk.filecoin.templates.matrices import matrices
from cuzk.filecoin.templates.matrices import matrix as written_out_matrix
from cuzk.filecoin.vanilla import read_post
from cuzk.filecoin.witness.assign import assign
from cuzk.filecoin.witness.system import constraint_system
from cuzk.formats.bellman import write_proof_bytes
from cuzk.prover.session import Prover
from cuzk.r1cs import ConstraintSystem, Matrix, SparseMatrix
from cuzk.vectors import Scalars
from emulator import EmulatedMachine

WINDOW = registered("post", "StackedDrgWindow2KiBV1")


@cache
def task() -> Task:
    sector = made_sector(WINDOW, 5)
    statement = PostStatement(WINDOW, RANDOMNESS, (Sector(5, sector.comm_r),))
    return post_task(read_post([sector.blob], WINDOW), statement)


def wires() -> Scalars:
    return assign(circuit("window-2KiB"), task().data(0))


def three(system: ConstraintSystem) -> list[Matrix]:
    assert system.c is not None
    return [system.a, system.b, system.c]


@pytest.mark.parametrize(
    "name", ["window-2KiB", "winning-2KiB", "update-2KiB", "porep-2KiB", "porep-8MiB"]
)
def test_the_same_system(name: str) -> None:
    """Rows are compared at the ends and at random."""
    written, placed = matrices(circuit(name)), constraint_system(circuit(name))
    for field in fields(written):
        if field.name not in "abc":
            assert getattr(placed, field.name) == getattr(written, field.name), field.name
    assert (placed.rows, placed.log_domain) == (written.rows, written.log_domain)
    rng = np.random.default_rng(1)
    for ours, theirs in zip(three(placed), three(written), strict=True):
        assert isinstance(theirs, SparseMatrix)
        assert (ours.rows, ours.terms) == (theirs.rows, theirs.terms)
        assert ours.values is theirs.values
        assert np.array_equal(ours.used(placed.wires), theirs.used(written.wires))
        some = rng.integers(0, theirs.rows, 6).tolist()
        for row in (0, 1, theirs.rows - 1, min(written.constraints, theirs.rows - 1), *some):
            assert ours.row(row) == theirs.row(row), row
        out = ours.written_out()
        for part in ("row_ptr", "wires", "coefficients"):
            assert np.array_equal(getattr(out, part), getattr(theirs, part)), part
    held, rows = (sum(m.nbytes for m in three(s)) for s in (placed, written))
    assert 500 * held < rows, (held, rows)


def test_the_same_proof_and_the_same_refusals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Byte for byte, with blinding that is known; no row is written out on a CPU."""
    shape, r, s = circuit("window-2KiB"), 1234567, 7654321
    file = params_file("window-2KiB")
    witness = wires()
    with Prover(file, circuit=matrices(shape), device="cpu", insecure_key=True) as prover:
        expected = write_proof_bytes(prover.prove_insecure(witness, r, s).proof)
        held = prover.standing.key_host
        refusals = {}
        for wire in (30, 100, 5000, len(witness) - 1):
            with pytest.raises(UnsatisfiedError) as raised:
                prover.prove(changed(witness, wire))
            refusals[wire] = str(raised.value)
    assert len(set(refusals.values())) == 4
    monkeypatch.setattr(systems, "matrix", None)
    with CircuitProver(shape, file, device="cpu", insecure_key=True) as whole:
        prover = whole.prover
        assert write_proof_bytes(prover.prove_insecure(witness, r, s).proof) == expected
        for wire, text in refusals.items():
            with pytest.raises(UnsatisfiedError) as raised:
                prover.prove(changed(witness, wire))
            assert str(raised.value) == text
        assert prover.key.matrices is None
        rows = sum(m.nbytes for m in three(matrices(shape)))
        assert held - rows < prover.standing.key_host < held - rows + 4096


def changed(witness: Scalars, wire: int) -> Scalars:
    words = witness.words.copy()
    words[wire, 0] ^= np.uint64(1)
    return Scalars(BLS12_381, words)


def test_a_gpu_gets_rows_that_the_host_does_not_keep(monkeypatch: pytest.MonkeyPatch) -> None:
    """One matrix after the other; its products are the processor's."""
    system = constraint_system(circuit("window-2KiB"))
    written: list[weakref.ref[SparseMatrix]] = []
    original = written_out_matrix

    def watched(*which: object) -> SparseMatrix:
        assert all(seen() is None for seen in written)
        found = original(*which)  # type: ignore[arg-type]
        written.append(weakref.ref(found))
        return found

    monkeypatch.setattr(systems, "matrix", watched)
    witness, size = wires(), 1 << system.log_domain
    gpu, cpu = CudaBackend(BLS12_381, EmulatedMachine()), CpuBackend(BLS12_381, 2)
    there, here = gpu.put(witness), cpu.put(witness)
    for matrix in three(system):
        on_gpu = gpu.product(gpu.put(matrix), there, size)
        expected = cpu.get(cpu.product(cpu.put(matrix), here, size))
        assert gpu.get(on_gpu).words.tobytes() == expected.words.tobytes()
    assert len(written) == 3
    assert all(seen() is None for seen in written)
