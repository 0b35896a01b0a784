"""Filecoin's hashes and the check before proving: ``python -m bench.hashes [C1 ...] [--threads 1]``.

Proves each hash right on a known answer, then prints microseconds of one: Poseidon by arity and arithmetic path,
nodes of tree D, labels. For each C1 file given, what it takes to check it, wrong ones stop the run.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from hashlib import sha256

import numpy as np

from bench.timing import least
from cuzk import _core
from cuzk.filecoin.c1 import read_c1
from cuzk.filecoin.check import check_c1
from cuzk.filecoin.poseidon import ARITIES, digests
from cuzk.vectors import Words, pack

# neptune's hash of two zeros, arity 2
OF_ZEROS = "d413460e7f14e58b413d1defe188d36fb761afe5c6a733db6c6f1931130bfe48"


def nodes(*shape: int) -> Words:
    """Values below r."""
    return np.random.default_rng(1).integers(0, 1 << 62, (*shape, 4), dtype=np.uint64)


def prove_right() -> None:
    """Known answers: neptune's for Poseidon, hashlib's for SHA-256."""
    found = digests(pack([0, 0], 4), 2).tobytes().hex()
    if found != OF_ZEROS:
        raise SystemExit(f"Poseidon of two zeros: expected {OF_ZEROS}, found {found}")
    pair, out = nodes(2).reshape(1, 8), np.empty((1, 4), dtype=np.uint64)
    _core.tree_d_nodes(pair, out, 1)
    expected = sha256(pair.tobytes()).digest()
    if out.tobytes() != expected[:31] + bytes([expected[31] & 0x3F]):
        raise SystemExit("tree D: a node is not SHA-256 of its children")


def work(n: int, threads: int) -> dict[str, Callable[[], object]]:
    """Names to n hashes each."""
    inputs = {arity: nodes(n, arity).reshape(n, -1) for arity in ARITIES}
    out, layers = np.empty((n, 4), dtype=np.uint64), np.full(n, 2, dtype=np.uint32)
    parents, order = nodes(n, 14).reshape(n, -1), np.arange(n, dtype=np.uint64)

    def of(arity: int) -> Callable[[], object]:
        return lambda: digests(inputs[arity], arity, threads=threads)

    return {
        **{f"Poseidon {arity}": of(arity) for arity in ARITIES},
        "tree D": lambda: _core.tree_d_nodes(inputs[2], out, threads),
        "label": lambda: _core.sdr_labels(nodes(1), layers, order, parents, out, threads),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("c1", nargs="*")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--hashes", type=int, default=2000)
    options = parser.parse_args()
    chosen = _core.path()
    for path in _core.paths():
        _core.use_path(path)
        prove_right()
        for name, call in work(options.hashes, options.threads).items():
            timing = least(call, repeat=5)
            each = 1e3 / options.hashes
            print(
                f"{path:8} {name:12} {timing.wall * each:7.2f} us  {timing.cpu * each:7.2f} us CPU"
            )
    _core.use_path(chosen)
    for file in options.c1:
        c1 = read_c1(file)
        timing = least(lambda c1=c1: check_c1(c1, threads=options.threads))  # type: ignore[misc]
        print(f"{c1.proof.name}: check {timing.wall:.1f} ms, {timing.cpu:.1f} ms CPU")


if __name__ == "__main__":
    main()
