"""The first item of a vanilla proof that is not what it must be, as an error of one line."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from cuzk.errors import UnsatisfiedError
from cuzk.vectors import Words

Place = Callable[..., str]
"""From the indices of an item to its name: "partition 3: challenge 0: layer 2"."""


def expect_nodes(expected: Words, found: Words, place: Place) -> None:
    """Arrays (..., 4) of nodes; shown as bytes, in hexadecimal."""
    expected = np.broadcast_to(expected, found.shape)
    _expect((expected != found).any(axis=-1), expected, found, place, _hexadecimal)


def expect_numbers(expected: NDArray[np.uint64], found: NDArray[np.uint64], place: Place) -> None:
    """Arrays (...) of numbers."""
    _expect(expected != found, expected, found, place, str)


def expect_node(expected: bytes, found: bytes, place: str) -> None:
    """Two nodes as bytes."""
    if expected != found:
        raise UnsatisfiedError(f"{place}: expected {expected.hex()}, found {found.hex()}")


def _expect(
    different: NDArray[np.bool_],
    expected: NDArray[np.uint64],
    found: NDArray[np.uint64],
    place: Place,
    show: Callable[[NDArray[np.uint64]], str],
) -> None:
    if different.any():
        item = tuple(int(i) for i in np.argwhere(different)[0])
        raise UnsatisfiedError(
            f"{place(*item)}: expected {show(expected[item])}, found {show(found[item])}"
        )


def _hexadecimal(node: Words) -> str:
    return node.tobytes().hex()
