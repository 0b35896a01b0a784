"""The constants of Filecoin's Poseidon, derived from their definition.

Round numbers: the fewest S-boxes that withstand the attacks of the paper at 128 bits, with a margin of two full
rounds and 7.5 % of the partial ones; neptune counts in 32-bit floats, so this does. Round constants: the Grain
LFSR of the paper's appendix. MDS matrix: Cauchy, M_ij = 1 / (i + t + j).

Reference: Grassi, Khovratovich, Rechberger, Roy, Schofnegger, "Poseidon: A New Hash Function for Zero-Knowledge
Proof Systems", 2021, sections 5.5 and appendices B, E, F; neptune's round_numbers, round_constants, mds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from cuzk.curves import BLS12_381

R = BLS12_381.r
FIELD_BITS = R.bit_length()
SECURITY_BITS = 128

Row = tuple[int, ...]
Matrix = tuple[Row, ...]


# Round numbers


def round_numbers(width: int) -> tuple[int, int]:
    """(full, partial) rounds of a state of ``width`` elements."""
    candidates = []
    for full in range(2, 100, 2):
        for partial in range(4, 200):
            if full >= _fewest_full_rounds(width, partial):
                with_margin = full + 2, int(np.ceil(np.float32(1.075) * np.float32(partial)))
                candidates.append((width * with_margin[0] + with_margin[1], with_margin))
                break  # more partial rounds only cost more
    return min(candidates)[1]


def _fewest_full_rounds(width: int, partial: int) -> int:
    """Against statistical, interpolation and Groebner basis attacks."""
    f = np.float32
    n, m, t, rp = f(FIELD_BITS), f(SECURITY_BITS), f(width), f(partial)
    statistical = f(6) if m <= (n - f(3)) * (t + f(1)) else f(10)
    interpolation = f(0.43) * m + np.log2(t) - rp
    groebner = f(0.21) * n - rp
    groebner_again = (f(0.14) * n - f(1) - rp) / (t - f(1))
    return int(np.ceil(max(statistical, interpolation, groebner, groebner_again)))


# Round constants


def round_constants(width: int, full: int, partial: int) -> list[Row]:
    """One row of ``width`` constants for each round."""
    values = _grain_values(width, full, partial)
    return [tuple(islice(values, width)) for _ in range(full + partial)]


def _grain_values(width: int, full: int, partial: int) -> Iterator[int]:
    """Field elements: 255 bits each, the first one highest, refused where they are not below r."""
    kept = ""
    for bits in _grain_bits(width, full, partial):
        pairs = bits.reshape(-1, 2)  # a bit counts where the bit before it is one
        kept += (pairs[pairs[:, 0] == 1, 1] + ord("0")).tobytes().decode()
        for begin in range(0, len(kept) - FIELD_BITS + 1, FIELD_BITS):
            value = int(kept[begin : begin + FIELD_BITS], 2)
            if value < R:
                yield value
        kept = kept[len(kept) // FIELD_BITS * FIELD_BITS :]


def _grain_bits(width: int, full: int, partial: int) -> Iterator[NDArray[np.uint8]]:
    """The LFSR's output after the first 160 bits, 2^14 * 18 bits at a time.

    b_(i+80) = b_(i+62) + b_(i+51) + b_(i+38) + b_(i+23) + b_(i+13) + b_i, so 18 bits follow from 80 at once.
    The first 80 say what the constants are for: a prime field, x^alpha, its bits, the sizes; then ones.
    """
    sizes = ((1, 2), (1, 4), (FIELD_BITS, 12), (width, 12), (full, 10), (partial, 10))
    text = "".join(format(value, f"0{size}b") for value, size in sizes).ljust(80, "1")
    state, begin, step = int(text[::-1], 2), 160, 18
    while True:
        words = []
        for _ in range(1 << 14):
            words.append(state & (1 << step) - 1)
            fresh = state >> 62 ^ state >> 51 ^ state >> 38 ^ state >> 23 ^ state >> 13 ^ state
            state = state >> step | (fresh & (1 << step) - 1) << 62
        octets = np.array(words, dtype="<u4").view(np.uint8).reshape(-1, 4)
        bits = np.unpackbits(octets, axis=1, bitorder="little")[:, :step].ravel()
        # the seed is output too, before the bits that are thrown away
        yield bits[begin + 80 :] if begin else bits
        begin = 0


# Matrices


def mds_matrix(width: int) -> Matrix:
    """Symmetric, so that rows times it and it times columns are the same."""
    return tuple(
        tuple(pow(row + width + column, -1, R) for column in range(width)) for row in range(width)
    )


def times(row: Sequence[int], matrix: Sequence[Sequence[int]]) -> Row:
    """A row vector times a matrix."""
    columns = zip(*matrix, strict=True)
    return tuple(sum(a * b for a, b in zip(row, column, strict=True)) % R for column in columns)


def solve(matrix: Matrix, right: Matrix) -> Matrix:
    """X with matrix * X = right, by Gauss and Jordan; the matrices here are invertible."""
    rows = [[*a, *b] for a, b in zip(matrix, right, strict=True)]
    for c in range(len(rows)):
        pivot = next(i for i in range(c, len(rows)) if rows[i][c])
        rows[c], rows[pivot] = rows[pivot], rows[c]
        scale = pow(rows[c][c], -1, R)
        rows[c] = [x * scale % R for x in rows[c]]
        for i, row in enumerate(rows):
            if i != c and row[c]:
                rows[i] = [(x - row[c] * y) % R for x, y in zip(row, rows[c], strict=True)]
    return tuple(tuple(row[len(rows) :]) for row in rows)


def inverse(matrix: Matrix) -> Matrix:
    """matrix^-1."""
    size = range(len(matrix))
    return solve(matrix, tuple(tuple(int(i == j) for j in size) for i in size))
