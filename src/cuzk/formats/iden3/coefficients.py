"""Section 4 of a .zkey: the matrices A and B, one record per term.

    u32 count, then count times: u32 matrix (0 A, 1 B) | u32 row | u32 wire | 32 bytes value c R^2 mod r

R = 2^256: a Montgomery product of the value with a plain witness element is the term in Montgomery form.
C is not stored (its row is the product of A's and B's). The constraints are followed by public + 1 rows of
A, row constraints + s holding wire s with coefficient 1. snarkjs writes rows in order, A's terms of a row
before B's; the reader does not count on it. A wire may occur twice in a row: the terms add up.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cuzk import _core
from cuzk.curves import Curve
from cuzk.formats.iden3.fields import check_scalars
from cuzk.formats.iden3.frame import Cursor
from cuzk.formats.source import Bytes
from cuzk.r1cs import PLUS_ONE, Matrices, SparseMatrix
from cuzk.vectors import Scalars, Words, pack

RECORD = np.dtype([("matrix", "<u4"), ("row", "<u4"), ("wire", "<u4"), ("value", "V32")])
VALUE_OFFSET = 12


def read_coefficients(
    cursor: Cursor, curve: Curve, *, wires: int, public: int, domain: int
) -> Matrices:
    """The circuit without its digest; how many constraints it has follows from where A's public rows are."""
    count = cursor.u32("count of records")
    size = RECORD.itemsize
    cursor.expect_length(4 + count * size, f"a count and {count} records of {size} bytes")
    raw = cursor.take(count * size, "records").reshape(count, size)
    records = raw.view(RECORD).reshape(count)
    for name, limit in (("matrix", 2), ("row", domain), ("wire", wires)):
        _expect_below(cursor, name, records[name], limit)
    numbers = np.empty(count, dtype=np.uint32)
    values = _dictionary(cursor, curve, raw, numbers)
    is_a = records["matrix"] == 0
    a_rows, b_rows = records["row"][is_a], records["row"][~is_a]
    constraints = (int(a_rows.max()) if len(a_rows) else -1) - public
    if constraints < 0:
        raise cursor.error(
            f"{public + 1} rows of A for the public signals", f"{constraints + public + 1} rows"
        )
    if len(b_rows) and int(b_rows.max()) >= constraints:
        raise cursor.error(
            f"rows of B below {constraints}, the first of A's {public + 1} public rows",
            int(b_rows.max()),
        )
    columns = records["wire"]
    a = _compressed(a_rows, columns[is_a], numbers[is_a], constraints + public + 1, values)
    b = _compressed(b_rows, columns[~is_a], numbers[~is_a], constraints, values)
    _check_public_rows(cursor, a, constraints, public)
    return Matrices(curve, wires, public, constraints, a, b, None, digest="")


def _expect_below(cursor: Cursor, name: str, values: NDArray[np.uint32], limit: int) -> None:
    if len(values) and int(values.max()) >= limit:
        first = int(np.argmax(values >= limit))
        raise cursor.error(f"record {first} to have a {name} below {limit}", int(values[first]))


def _dictionary(cursor: Cursor, curve: Curve, raw: Bytes, numbers: NDArray[np.uint32]) -> Scalars:
    """Distinct values, +1 and -1 first: c R^2 in the file, c R in memory."""
    r, n = curve.r, curve.fr_words
    one = pow(2, 128 * n, r)
    values = _core.number_values(raw, VALUE_OFFSET, pack([one, r - one], n), numbers)
    check_scalars(Scalars(curve, values), cursor.where, "coefficient")
    _core.from_montgomery(curve.name, "fr", values, values, 1)
    return Scalars(curve, values, montgomery=True)


def _compressed(
    rows: NDArray[np.uint32],
    wires: NDArray[np.uint32],
    numbers: NDArray[np.uint32],
    count: int,
    values: Scalars,
) -> SparseMatrix:
    if np.any(rows[1:] < rows[:-1]):
        order = np.argsort(rows, kind="stable")
        wires, numbers = wires[order], numbers[order]
    row_ptr = np.zeros(count + 1, dtype=np.uint64)
    np.cumsum(np.bincount(rows, minlength=count), out=row_ptr[1:])
    return SparseMatrix(row_ptr, wires, numbers, values)


def _check_public_rows(cursor: Cursor, a: SparseMatrix, constraints: int, public: int) -> None:
    first = int(a.row_ptr[constraints])
    good = (
        a.terms - first == public + 1
        and np.array_equal(a.row_ptr[constraints:] - first, np.arange(public + 2))
        and np.array_equal(a.wires[first:], np.arange(public + 1))
        and not np.any(a.coefficients[first:] != PLUS_ONE)
    )
    if not good:
        raise cursor.error(
            f"A's last {public + 1} rows to hold wires 0 to {public}, one each, with coefficient 1",
            "others (the public signals would not be bound)",
        )


def coefficient_bytes(matrices: Matrices) -> Bytes:
    """The content of section 4, records in snarkjs' order: by row, A before B."""
    a, b = matrices.a, matrices.b
    count = a.terms + b.terms
    out = np.empty(4 + count * RECORD.itemsize, dtype=np.uint8)
    out[:4] = np.frombuffer(count.to_bytes(4, "little"), dtype=np.uint8)
    records = out[4:].view(RECORD)
    a_rows, b_rows = _row_numbers(a), _row_numbers(b)
    # behind A's terms up to row i come B's of the rows before i; behind B's of row i, A's of rows up to i
    before_a = b.row_ptr.astype(np.int64)[np.minimum(a_rows, b.rows)]
    before_b = a.row_ptr.astype(np.int64)[b_rows + 1]
    values = _file_form(a.values), _file_form(b.values)
    for number, (matrix, rows, before) in enumerate(((a, a_rows, before_a), (b, b_rows, before_b))):
        at = np.arange(matrix.terms) + before
        records["matrix"][at] = number
        records["row"][at] = rows
        records["wire"][at] = matrix.wires
        records["value"][at] = values[number][matrix.coefficients]
    return out


def _row_numbers(matrix: SparseMatrix) -> NDArray[np.int64]:
    bounds = matrix.row_ptr.astype(np.int64)
    return np.repeat(np.arange(matrix.rows), bounds[1:] - bounds[:-1])


def _file_form(values: Scalars) -> NDArray[np.void]:
    """c R to c R^2, as 32-byte values."""
    words: Words = np.empty_like(values.words)
    _core.to_montgomery(values.curve.name, "fr", values.words, words, 1)
    return words.view("V32").reshape(-1)
