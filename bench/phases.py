"""Where the time of a proof goes, in one process: load, each phase, verification.

    python -m bench.phases KEY.zkey WITNESS.wtns [--threads 2] [--runs 5] [--json]

First, a small proof of known secrets and blinding must be the three points that the paper's equations
give in Python integers: with u, v, w the columns of A, B, C at tau and K = beta u + alpha v + w,

    A = alpha + sum w_i u_i + r delta    B = beta + sum w_i v_i + s delta
    C = (A B - alpha beta - sum_public w_i K_i) / delta            (logarithms, gamma = 1).

Figures are medians: wall time, processor time, pages touched for the first time. "load" is
:func:`cuzk.load_key`; "reside" and "witness" are the checks of a Prover; "verify" its self-check.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import cuzk
from bench.circuits import SECRETS, circuit_of
from bench.timing import Meter
from cuzk.backends.cpu import CpuBackend
from cuzk.bench.place import host
from cuzk.groth16 import BELLMAN, SNARKJS
from cuzk.prover import prove, reside
from cuzk.prover.checks import check_satisfied, check_witness
from cuzk.prover.report import peak_bytes
from cuzk.r1cs import Matrices, SparseMatrix
from cuzk.setup import insecure_setup
from cuzk.setup.scalars import multiple
from cuzk.vectors import Scalars
from cuzk.verifier import Verifier

SMALL = 5  # log2 of the rows of the proof that is checked


def columns(matrix: SparseMatrix, wires: int, lagrange: list[int]) -> list[int]:
    """Each column's polynomial at tau."""
    values = [0] * wires
    for i in range(matrix.rows):
        for coefficient, wire in matrix.row(i):
            values[wire] += coefficient * lagrange[i]
    return values


def logarithms(matrices: Matrices, w: list[int], root: int, r: int, s: int) -> list[int]:
    """Of A, B, C; ``root`` generates the domain."""
    curve, n, x = matrices.curve, 1 << matrices.log_domain, SECRETS
    order = curve.r
    at = [pow(root, i, order) for i in range(n)]
    z = (pow(x.tau, n, order) - 1) * pow(n, -1, order)
    lagrange = [z * t * pow(x.tau - t, -1, order) % order for t in at]
    if matrices.c is None:
        sys.exit("a recorded circuit has its C")
    u, v, k = (columns(m, matrices.wires, lagrange) for m in (matrices.a, matrices.b, matrices.c))
    a = x.alpha + sum(map(int.__mul__, w, u)) + r * x.delta
    b = x.beta + sum(map(int.__mul__, w, v)) + s * x.delta
    public = sum(w[i] * (x.beta * u[i] + x.alpha * v[i] + k[i]) for i in range(matrices.public + 1))
    c = (a * b - x.alpha * x.beta - public) * pow(x.delta, -1, order)
    return [value % order for value in (a, b, c)]


def prove_right(curve: str, recipe: str, kind: str, threads: int) -> None:
    """Stops the benchmark where the prover's points are not those of the equations."""
    circuit = circuit_of(kind, curve, SMALL)
    matrices, witness = circuit.matrices(), circuit.witness()
    key = insecure_setup(matrices, SECRETS, recipe)
    backend = CpuBackend(key.curve, threads)
    proof = prove(reside(key, matrices, backend), witness, backend, r=1234567, s=7654321)
    root = key.curve.root_of_unity(SMALL, key.generator)
    logs = logarithms(matrices, witness.ints(), root, 1234567, 7654321)
    for name, group, log in zip("abc", ("g1", "g2", "g1"), logs, strict=True):
        if getattr(proof, name).affine() != multiple(key.curve, group, log).affine():
            sys.exit(f"{curve}, {recipe}, {kind}: {name.upper()} is not what the equations say")


def measure(key_path: Path, witness_path: Path, threads: int, runs: int) -> dict[str, object]:
    """One file's figures; the first run is not counted."""
    warm, counted = Meter(), Meter()
    for run in range(runs + 1):
        meter = counted if run else warm
        with meter("load"):
            key = cuzk.load_key(key_path, insecure_key=True, threads=threads)
        if key.matrices is None:
            sys.exit(f"{key_path}: expected a .zkey, found a key without its circuit")
        backend = CpuBackend(key.curve, threads)
        with meter("reside"):
            resident = reside(key, key.matrices, backend)
            verifier = Verifier(key.vk, insecure_key=True, threads=threads)
        with meter("witness"):
            loaded: Scalars = cuzk.load_witness(witness_path, threads=threads)
            witness = check_witness(loaded, key, key.matrices, witness_path.name)
            w = backend.put(witness)
            check_satisfied(resident, w, backend, witness_path.name)
        with meter("prove"):
            proof = prove(resident, w, backend, 5 + run, 7 + run, meter)
        public = witness[1 : key.matrices.public + 1].ints()
        with meter("verify"):
            valid = verifier.verify(public, proof)
        if not valid:
            sys.exit(f"{key_path}: the proof does not verify")
    return {
        "key": str(key_path),
        "curve": key.curve.name,
        "log_domain": key.log_domain,
        "threads": threads,
        "key_bytes": key.file_bytes,
        "peak_bytes": peak_bytes(),
        "phases": counted.medians(),
    }


def show(row: dict[str, object]) -> None:
    phases = row["phases"]
    if not isinstance(phases, dict):
        raise TypeError(phases)
    print(f"{row['key']}: {row['curve']}, 2^{row['log_domain']}, {row['threads']} threads")
    print(f"    {'phase':14}{'wall ms':>10}{'cpu ms':>10}{'pages':>9}")
    for name, spent in phases.items():
        cells = f"{spent['wall_ms']:10.2f}{spent['cpu_ms']:10.2f}{spent['faults']:9.0f}"
        print(f"    {name:14}{cells}", flush=True)


def prove_all_right(threads: int) -> None:
    for curve in ("bn254", "bls12_381"):
        for recipe in (SNARKJS, BELLMAN):
            for kind in ("dense", "bits"):
                prove_right(curve, recipe, kind, threads)


def main() -> None:
    parser = argparse.ArgumentParser(description="phases of a proof, after a check")
    parser.add_argument("key", type=Path)
    parser.add_argument("witness", type=Path)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    prove_all_right(options.threads)
    row = measure(options.key, options.witness, options.threads, options.runs)
    if options.json:
        print(json.dumps({"machine": host(), **row}))
    else:
        show(row)


if __name__ == "__main__":
    main()
