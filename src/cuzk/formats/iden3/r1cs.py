""".r1cs: a circuit as circom writes it.

    1  u32 n8, prime r, u32 wires, outputs, public inputs, private inputs, u64 labels, u32 constraints
    2  per constraint A, B, C: u32 terms, then terms times (u32 wire, n8 bytes coefficient, plain)
    3  wires times u64 label
    4, 5  PLONK's custom gates and their uses: listed by ``inspect``, refused for proving

Source: https://github.com/iden3/r1csfile/blob/master/doc/r1cs_bin_format.md
"""

from __future__ import annotations

import hashlib
import os
import struct
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cuzk import _core
from cuzk.curves import Curve
from cuzk.errors import FormatError
from cuzk.formats.iden3.fields import prime_bytes, take_scalar_field
from cuzk.formats.iden3.frame import Cursor, Frame, frame_chunks, read_frame
from cuzk.formats.source import Bytes, Chunk, Readable, Source, octets, write_atomically
from cuzk.r1cs import PLUS_ONE, Matrices, SparseMatrix
from cuzk.vectors import Scalars

HEADER, CONSTRAINTS, LABELS, GATES, GATE_USES = 1, 2, 3, 4, 5
NAMES = {
    HEADER: "header",
    CONSTRAINTS: "constraints",
    LABELS: "wire labels",
    GATES: "custom gates",
    GATE_USES: "custom gate uses",
}
VERSION = 1
LEAST_CONSTRAINT = 12  # three empty linear combinations
MOST_GATES_BYTES = 1 << 20  # of templates' names and parameters


@dataclass(frozen=True)
class R1csHeader:
    """What an .r1cs says about its circuit."""

    curve: Curve
    wires: int
    outputs: int
    public_inputs: int
    private_inputs: int
    labels: int
    constraints: int
    custom_gates: tuple[str, ...]  # templates by name
    custom_gate_uses: int
    digest: str  # hex BLAKE2b-256 of the constraint section
    warnings: tuple[str, ...]

    @property
    def public(self) -> int:
        """Outputs and public inputs."""
        return self.outputs + self.public_inputs


def read_r1cs_header(what: Readable) -> R1csHeader:
    """Everything but the constraints themselves."""
    return _header(_frame(what))


def read_r1cs(what: Readable) -> Matrices:
    """The circuit; A ends with the public rows. A circuit with custom gates is refused."""
    frame = _frame(what)
    header = _header(frame)
    if header.custom_gates or header.custom_gate_uses:
        gates = ", ".join(header.custom_gates) or f"{header.custom_gate_uses} uses"
        raise FormatError(
            f"{frame.where(GATES)}: expected none, found {gates}: custom gates are PLONK's, groth16 has none"
        )
    return _matrices(frame.section(CONSTRAINTS), header)


def _frame(what: Readable) -> Frame:
    return read_frame(Source.open(what, "an .r1cs file"), "r1cs", (VERSION,), NAMES)


def _header(frame: Frame) -> R1csHeader:
    cursor = frame.section(HEADER)
    curve = take_scalar_field(cursor)
    wires, outputs, inputs, private = (
        cursor.u32(name) for name in ("wires", "outputs", "public inputs", "private inputs")
    )
    labels, constraints = cursor.u64("labels"), cursor.u32("constraints")
    cursor.end()
    if wires < 1 + outputs + inputs:
        raise cursor.error(
            f"at least {1 + outputs + inputs} wires for {outputs} outputs and {inputs} public inputs",
            wires,
        )
    frame.section(LABELS).expect_length(8 * wires, f"{wires} labels of 8 bytes")
    content = frame.section(CONSTRAINTS)
    if content.length < LEAST_CONSTRAINT * constraints:
        raise content.error(
            f"at least {LEAST_CONSTRAINT * constraints} bytes for {constraints} constraints",
            content.length,
        )
    return R1csHeader(
        curve, wires, outputs, inputs, private, labels, constraints,
        _gates(frame, curve), _gate_uses(frame),
        digest(content), frame.warnings,
    )  # fmt: skip


def digest(cursor: Cursor) -> str:
    """Hex BLAKE2b-256 of a whole section: what binds a circuit."""
    content = cursor.source.at(cursor.offset, cursor.length)
    return hashlib.blake2b(content.data, digest_size=32).hexdigest()


def _gates(frame: Frame, curve: Curve) -> tuple[str, ...]:
    """u32 gates; each: name ending in a zero byte, u32 parameters, each a field element."""
    if GATES not in frame or not (cursor := frame.section(GATES)).length:
        return ()
    if cursor.length > MOST_GATES_BYTES:
        raise cursor.error(f"at most {MOST_GATES_BYTES} bytes of custom gates", cursor.length)
    names = []
    for _ in range(cursor.u32("custom gates")):
        text = bytearray()
        while byte := cursor.u8("custom gate's name"):
            text.append(byte)
        names.append(text.decode("utf-8", "backslashreplace"))
        cursor.take(8 * curve.fr_words * cursor.u32("parameters"), "custom gate's parameters")
    cursor.end()
    return tuple(names)


def _gate_uses(frame: Frame) -> int:
    if GATE_USES not in frame or not (cursor := frame.section(GATE_USES)).length:
        return 0
    return cursor.u32("custom gate uses")


def _matrices(cursor: Cursor, header: R1csHeader) -> Matrices:
    curve, rows = header.curve, header.constraints
    data = cursor.take(cursor.length, "constraints")
    try:
        counts = _core.r1cs_terms(curve.name, data, rows, header.wires)
        public_rows = header.public + 1
        extra = (public_rows, 0, 0)
        row_ptrs = [np.empty(rows + 1 + more, dtype=np.uint64) for more in extra]
        wires, numbers = (
            [np.empty(n + more, dtype=np.uint32) for n, more in zip(counts, extra, strict=True)]
            for _ in range(2)
        )
        values = _core.r1cs_fill(
            curve.name, data, rows, row_ptrs,
            [array[:n] for array, n in zip(wires, counts, strict=True)],
            [array[:n] for array, n in zip(numbers, counts, strict=True)],
        )  # fmt: skip
    except ValueError as error:
        raise FormatError(f"{cursor.where}: {error}") from None
    row_ptrs[0][rows + 1 :] = counts[0] + np.arange(1, public_rows + 1, dtype=np.uint64)
    wires[0][counts[0] :] = np.arange(public_rows, dtype=np.uint32)
    numbers[0][counts[0] :] = PLUS_ONE
    _core.to_montgomery(curve.name, "fr", values, values, 1)
    dictionary = Scalars(curve, values, montgomery=True)
    a, b, c = (SparseMatrix(*csr, dictionary) for csr in zip(row_ptrs, wires, numbers, strict=True))
    return Matrices(curve, header.wires, header.public, rows, a, b, c, header.digest)


def write_r1cs(
    path: str | os.PathLike[str],
    matrices: Matrices,
    *,
    outputs: int = 0,
    private_inputs: int = 0,
) -> None:
    """Write a circuit that has its matrix C; labels are the wires themselves.

    ``outputs`` of the public signals are outputs, the others inputs; ``private_inputs`` is a number for
    the reader's information.
    """
    if matrices.c is None:
        raise FormatError(
            f"{path}: expected a circuit with its matrix C, found one read from a .zkey"
        )
    curve = matrices.curve
    header = prime_bytes(curve.r, curve.fr_words) + struct.pack(
        "<IIIIQI", matrices.wires, outputs, matrices.public - outputs, private_inputs,
        matrices.wires, matrices.constraints,
    )  # fmt: skip
    labels = np.arange(matrices.wires, dtype="<u8")
    constraints = _constraint_bytes([matrices.a, matrices.b, matrices.c], matrices.constraints)
    sections: list[tuple[int, list[Chunk]]] = [
        (CONSTRAINTS, [constraints.data]),
        (HEADER, [header]),
        (LABELS, [octets(labels)]),
    ]
    write_atomically(path, frame_chunks("r1cs", VERSION, sections))


def _constraint_bytes(matrices: list[SparseMatrix], constraints: int) -> Bytes:
    """Section 2: where each linear combination begins follows from the lengths of those before it."""
    term = 4 + 8 * matrices[0].values.curve.fr_words
    bounds = [m.row_ptr[: constraints + 1].astype(np.int64) for m in matrices]
    lengths = np.stack([b[1:] - b[:-1] for b in bounds], axis=1)
    sizes = 4 + term * lengths.reshape(-1)
    starts = (np.cumsum(sizes) - sizes).reshape(lengths.shape)
    out = np.zeros(int(sizes.sum()), dtype=np.uint8)
    for m, matrix in enumerate(matrices):
        terms, counts = int(bounds[m][-1]), lengths[:, m]
        _scatter(out, starts[:, m], rows_of_bytes(counts.astype("<u4")))
        rank = np.arange(terms) - np.repeat(bounds[m][:-1], counts)
        records = np.empty((terms, term), dtype=np.uint8)
        records[:, :4] = rows_of_bytes(matrix.wires[:terms])
        records[:, 4:] = _plain(matrix.values)[matrix.coefficients[:terms]]
        _scatter(out, np.repeat(starts[:, m] + 4, counts) + term * rank, records)
    return out


def rows_of_bytes(numbers: NDArray[np.uint32]) -> Bytes:
    """(n, 4) bytes, little-endian."""
    return numbers.astype("<u4").view(np.uint8).reshape(-1, 4)


def _scatter(out: Bytes, at: NDArray[np.int64], rows: Bytes) -> None:
    """rows[k] goes to out[at[k]:]."""
    for column in range(rows.shape[1]):
        out[at + column] = rows[:, column]


def _plain(values: Scalars) -> Bytes:
    words = np.empty_like(values.words)
    _core.from_montgomery(values.curve.name, "fr", values.words, words, 1)
    return words.astype("<u8").view(np.uint8).reshape(len(words), -1)
