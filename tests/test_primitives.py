"""msm and ntt by themselves: what is no point, no integer or no size is refused in words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cuzk
from circuits import chain
from cuzk.curves import BN254
from cuzk.errors import CuzkError, FormatError
from cuzk.setup import Secrets, insecure_setup
from cuzk.vectors import Points, Scalars

G = BN254.g1


@pytest.mark.parametrize(
    ("points", "scalars"),
    [
        ([G], [1.5]), ([G], ["5"]), ([G], [None]), ([(1.0, 2.0)], [5]), ([("1", "2")], [5]), ([5], [5]),
        ([(1, 2, 3)], [5]), ([(1, 3)], [5]), ([(1, BN254.p + 2)], [5]), ([G], np.array([5])), ([G], [1, 2]),
        (Points(BN254, "g1", np.zeros((1, 5), np.uint64)), [5]),
        ([G], Scalars(BN254, np.full((1, 4), 2**64 - 1, np.uint64))),
    ],
)  # fmt: skip
def test_msm_refuses(points: Any, scalars: Any) -> None:
    with pytest.raises(FormatError):
        cuzk.msm("bn254", "g1", points, scalars)


def test_msm_takes_numpys_integers() -> None:
    expected = cuzk.msm("bn254", "g1", [G, G], [7, BN254.r - 1])
    points: Any = [(np.uint8(1), np.int64(2)), G]
    scalars: Any = [np.uint8(7), np.int64(-1)]
    found = cuzk.msm("bn254", "g1", points, scalars)
    assert found == expected
    assert cuzk.msm("bn254", "g1", [], []) is None


@pytest.mark.parametrize(
    "call",
    [
        lambda: cuzk.ntt("bn254", [1.0, 2.0]),  # type: ignore[list-item]
        lambda: cuzk.ntt("bn254", "ab"),  # type: ignore[arg-type]
        lambda: cuzk.ntt("bn254", [1, 2, 3]),
        lambda: cuzk.ntt("bn254", [1, 2], generator=0),
        lambda: cuzk.ntt("bn254", [1, 2], generator=4),  # a square
        lambda: cuzk.ntt("toy", [1, 2]),
        lambda: cuzk.msm("toy", "g1", [(1,)], [5]),
        lambda: cuzk.msm("bn254", "gt", [G], [5]),
        lambda: cuzk.msm("bn254", "g1", [G], [5], threads=2.0),  # type: ignore[arg-type]
        lambda: cuzk.msm("bn254", "g1", [G], [5], threads="2"),  # type: ignore[arg-type]
    ],
)
def test_refused(call: Callable[[], object]) -> None:
    with pytest.raises(FormatError):
        call()


@pytest.mark.parametrize(
    "change", [lambda w: w[:, :3], lambda w: w[0], lambda w: w.astype(np.float64), lambda w: w[:-1]]
)
def test_witnesses_of_other_words(change: Callable[[Any], Any]) -> None:
    circuit = chain(BN254, 5)
    key = insecure_setup(circuit.matrices(), Secrets.drawn(BN254))
    words = circuit.witness().words
    with cuzk.Prover(key) as prover:
        with pytest.raises(CuzkError):
            prover.prove(Scalars(BN254, change(words)))
        assert prover.prove(Scalars(BN254, np.asfortranarray(words))).public
