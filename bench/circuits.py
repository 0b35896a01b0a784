"""Circuits made here, with keys from known secrets, so that a benchmark needs no other program's files.

    dense   x <- x^2 + i: every witness value has full length
    bits    c = a xor b by 2a * b = a + b - c: every witness value but the public one is 0 or 1

Both fill a domain of 2^k rows. The secrets are written down here: the keys are for timing only.
``python -m bench.circuits FOLDER --curve bn254 --kinds dense,bits --sizes 12-17`` writes
FOLDER/CURVE/KINDk.zkey and .wtns.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from random import Random

from bench.timing import sizes
from cuzk.circuit import Circuit, Linear
from cuzk.formats.iden3.wtns import write_wtns
from cuzk.formats.iden3.zkey_writer import write_zkey
from cuzk.setup import Secrets, insecure_setup

SECRETS = Secrets(tau=2**200 + 235, alpha=2**190 + 7, beta=2**180 + 11, delta=2**170 + 13)
KINDS = ("dense", "bits")


def circuit_of(kind: str, curve: str, log_n: int) -> Circuit:
    """2^log_n rows: that many constraints less two, one public signal and the constant."""
    constraints = (1 << log_n) - 2
    return {"dense": dense, "bits": bits}[kind](curve, constraints)


def dense(curve: str, constraints: int, start: int = 7) -> Circuit:
    circuit = Circuit(curve)
    x, values = start, []
    for i in range(constraints):
        x = (x * x + i) % circuit.curve.r
        values.append(x)
    out, signal = circuit.public(x), circuit.private(start)
    for i, value in enumerate(values):
        result = out if i == constraints - 1 else circuit.private(value)
        circuit.enforce(signal, signal, result - i)
        signal = result
    return circuit


def bits(curve: str, constraints: int) -> Circuit:
    """The last constraint adds up some of the bits."""
    circuit, rng = Circuit(curve), Random(1)
    given = [rng.getrandbits(1) for _ in range(256)]
    total = circuit.public(sum(given))
    signals = [(circuit.private(bit), bit) for bit in given]
    for _ in range(constraints - 1):
        (a, x), (b, y) = rng.sample(signals[-256:], 2)
        signals.append((circuit.private(x ^ y), x ^ y))
        circuit.enforce(a * 2, b, a + b - signals[-1][0])
    circuit.enforce(Linear({s: 1 for a, _ in signals[:256] for s in a.terms}), 1, total)
    return circuit


def write(folder: Path, kind: str, curve: str, log_n: int) -> Path:
    """The key's path; the witness lies beside it."""
    circuit = circuit_of(kind, curve, log_n)
    key = insecure_setup(circuit.matrices(), SECRETS, threads=2)
    path = folder / curve / f"{kind}{log_n}.zkey"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_zkey(path, key)
    write_wtns(path.with_suffix(".wtns"), circuit.witness())
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description="write circuits to time")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--curve", choices=["bn254", "bls12_381"], default="bn254")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--sizes", type=sizes, default=sizes("12-17"))
    options = parser.parse_args()
    for kind in options.kinds.split(","):
        for log_n in options.sizes:
            print(write(options.folder, kind, options.curve, log_n), flush=True)


if __name__ == "__main__":
    main()
