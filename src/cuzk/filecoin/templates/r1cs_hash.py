"""The R1CS hash of bellpepper-core's TestConstraintSystem: one number for all rows, variables and coefficients.

    BLAKE2s-256( inputs, aux, constraints, then for every row of A, B, C in turn: terms, then each term )

Counts are 8 bytes, big-endian. A term is "I" or "A" for a public input or a private variable, its index in 8 bytes
and the coefficient in 32, big-endian; inputs come first, and indices ascend. The rows that a prover appends for
the public inputs are left out.

Definition: bellpepper-core's util_cs::test_cs::TestConstraintSystem::hash.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuzk.filecoin.templates.circuit import CircuitShape, Placement

_TERM = np.dtype([("kind", "S1"), ("index", ">u8"), ("coefficient", "V32")])
_COUNT_BYTES = 8
_CHUNK_TERMS = 1 << 18  # 10 MB of text; 2^17 to 2^20 differ by a fifth


def r1cs_hash(shape: CircuitShape) -> str:
    """Hex; 2 s for the 2.7 million rows of a 2 KiB PoRep, half of it BLAKE2s (one core, 2026-11-30)."""
    sizes = np.array([shape.inputs, shape.aux, shape.constraints], dtype=">u8")
    digest = hashlib.blake2s(sizes.tobytes())
    values = np.frombuffer(
        b"".join(v.to_bytes(32, "big") for v in shape.coefficients.ints()), dtype="V32"
    )
    for chunk in _chunks(shape):
        digest.update(_text(chunk, values, shape.inputs).data)
    return digest.hexdigest()


def _chunks(shape: CircuitShape) -> Iterator[list[Placement]]:
    chunk: list[Placement] = []
    terms = 0
    for placement in shape.placements():
        chunk.append(placement)
        terms += sum(m.terms for m in placement.template.matrices)
        if terms >= _CHUNK_TERMS:
            yield chunk
            chunk, terms = [], 0
    yield chunk


def _text(chunk: list[Placement], values: NDArray[Any], inputs: int) -> NDArray[np.uint8]:
    """What the rows of some placements add to the hash."""
    lists, wires, numbers = [], [], []
    for placement in chunk:
        lengths = np.empty((placement.template.rows, 3), dtype=np.int64)
        for i, m in enumerate(placement.template.matrices):
            lengths[:, i] = np.diff(m.starts)
        lists.append(lengths.ravel())
        rows = _by_row(placement, lengths)
        wires.append(placement.wires[rows[0]])
        numbers.append(rows[1])
    if not chunk:
        return np.zeros(0, dtype=np.uint8)
    lengths, wire, number = (np.concatenate(parts) for parts in (lists, wires, numbers))
    combination = np.repeat(np.arange(len(lengths), dtype=np.int64), lengths)
    order = np.argsort(combination << 32 | wire, kind="stable")
    return _bytes(lengths, combination, wire[order], values[number[order]], inputs)


def _by_row(placement: Placement, lengths: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Columns and coefficient numbers with A's, B's and C's terms of each row together."""
    matrices = placement.template.matrices
    columns = np.empty(int(lengths.sum()), dtype=np.uint32)
    numbers = np.empty(len(columns), dtype=np.uint16)
    starts = (np.cumsum(lengths.ravel()) - lengths.ravel()).reshape(lengths.shape)
    for i, m in enumerate(matrices):
        shift = starts[:, i] - m.starts[:-1]
        places = np.arange(m.terms) + np.repeat(shift, lengths[:, i])
        columns[places] = m.columns
        numbers[places] = m.coefficients
    return columns, numbers


def _bytes(
    lengths: NDArray[np.int64],
    combination: NDArray[np.int64],
    wires: NDArray[np.uint32],
    coefficients: NDArray[Any],
    inputs: int,
) -> NDArray[np.uint8]:
    """Counts and terms of all combinations; ``wires`` and ``coefficients`` in the order of the text."""
    terms = np.empty(len(wires), dtype=_TERM)
    public = wires < inputs
    terms["kind"] = np.where(public, b"I", b"A")
    terms["index"] = np.where(public, wires, wires - np.uint32(inputs))
    terms["coefficient"] = coefficients
    size, step = _TERM.itemsize * len(terms) + _COUNT_BYTES * len(lengths), _TERM.itemsize
    text = np.empty(size, dtype=np.uint8)
    begins = _COUNT_BYTES * np.arange(len(lengths)) + step * (np.cumsum(lengths) - lengths)
    # views whose items begin at every byte: an item is then placed by one copy
    at_byte = np.ndarray((size - _COUNT_BYTES + 1,), ">u8", text, strides=(1,))
    at_byte[begins] = lengths
    if len(terms):
        places = _COUNT_BYTES * (combination + 1) + step * np.arange(len(terms))
        items = np.ndarray((size - step + 1,), f"V{step}", text, strides=(1,))
        items[places] = terms.view(f"V{step}")
    return text
