"""Small iden3 files written with struct alone, and the taking apart of any: what the readers are tested with.

The circuit: y = x * x, out = (2 y - x + 5) * in, 0 = 0 * 0, with out and in public. Points are small
multiples of the generators, computed by py_ecc; they make a well-formed key, not one that proves anything.
``python tests/formats/iden3_files.py`` writes the corpus anew.
"""

from __future__ import annotations

import struct
from functools import cache
from pathlib import Path
from typing import Any

from py_ecc import optimized_bls12_381, optimized_bn128

from cuzk.curves import CURVES, Curve
from cuzk.r1cs import SparseMatrix

CORPUS = Path(__file__).resolve().parents[1] / "corpus" / "iden3"
KINDS = ("r1cs", "wtns", "zkey", "ptau")
LIBRARY: dict[str, Any] = {"bn254": optimized_bn128, "bls12_381": optimized_bls12_381}

WITNESS = [1, 140, 7, 3, 9]  # one, out, in, x, y
WIRES, PUBLIC, DOMAIN = 5, 2, 8
A = [[(3, 1)], [(4, 2), (3, -1), (0, 5)], []]
B = [[(3, 1)], [(2, 1)], []]
C = [[(4, 1)], [(1, 1)], []]
POWER = 2
TAU, ALPHA, BETA = 5, 11, 13

Sections = list[tuple[int, bytes]]


def assemble(kind: str, sections: Sections, version: int = 1) -> bytes:
    out = kind.encode() + struct.pack("<II", version, len(sections))
    return out + b"".join(struct.pack("<IQ", n, len(content)) + content for n, content in sections)


def take_apart(data: bytes) -> Sections:
    found, at = [], 12
    for _ in range(struct.unpack_from("<I", data, 8)[0]):
        number, length = struct.unpack_from("<IQ", data, at)
        found.append((number, data[at + 12 : at + 12 + length]))
        at += 12 + length
    return found


def with_section(data: bytes, number: int, content: bytes | None) -> bytes:
    """The same file with one section's content replaced, or without that section."""
    sections = [(n, content if n == number else old) for n, old in take_apart(data)]
    kept = [(n, c) for n, c in sections if c is not None]
    return assemble(data[:4].decode(), kept, struct.unpack_from("<I", data, 4)[0])


def edges(data: bytes) -> list[int]:
    """Offsets where a section's id, length and content begin, and the end of the file."""
    found, at = [4, 8, 12], 12
    for _, content in take_apart(data):
        found += [at + 4, at + 12, at + 12 + len(content)]
        at += 12 + len(content)
    return found


def prime(value: int, size: int) -> bytes:
    return struct.pack("<I", size) + value.to_bytes(size, "little")


def sizes(curve: Curve) -> tuple[int, int]:
    """Bytes of a base field element and of a scalar."""
    return {"bn254": 32, "bls12_381": 48}[curve.name], 32


@cache
def point(curve: Curve, group: str, k: int) -> bytes:
    """k times the generator, as the files hold it."""
    library, size = LIBRARY[curve.name], sizes(curve)[0]
    if k % curve.r == 0:
        return bytes(size * (2 if group == "g1" else 4))
    generator = library.G1 if group == "g1" else library.G2
    x, y = library.normalize(library.multiply(generator, k % curve.r))
    coordinates = [x.n, y.n] if group == "g1" else [*x.coeffs, *y.coeffs]
    return b"".join(
        (int(c) * 2 ** (8 * size) % curve.p).to_bytes(size, "little") for c in coordinates
    )


def points(curve: Curve, group: str, scalars: list[int]) -> bytes:
    return b"".join(point(curve, group, k) for k in scalars)


def r1cs(curve: Curve) -> bytes:
    header = prime(curve.r, 32) + struct.pack("<IIIIQI", WIRES, 1, 1, 1, WIRES, len(A))
    constraints = b""
    for rows in zip(A, B, C, strict=True):
        for row in rows:
            constraints += struct.pack("<I", len(row))
            for wire, c in row:
                constraints += struct.pack("<I", wire) + (c % curve.r).to_bytes(32, "little")
    labels = struct.pack(f"<{WIRES}Q", *range(WIRES))
    return assemble("r1cs", [(2, constraints), (1, header), (3, labels)])


def wtns(curve: Curve, values: list[int] | None = None, version: int = 2) -> bytes:
    values = WITNESS if values is None else values
    header = prime(curve.r, 32) + struct.pack("<I", len(values))
    content = b"".join(v.to_bytes(32, "little") for v in values)
    return assemble("wtns", [(1, header), (2, content)], version)


def coefficients(curve: Curve, a: Any = None, b: Any = None) -> bytes:
    a, b = A if a is None else a, B if b is None else b
    records = []
    for row, (in_a, in_b) in enumerate(zip(a, b, strict=True)):
        records += [(0, row, wire, c) for wire, c in in_a] + [(1, row, wire, c) for wire, c in in_b]
    records += [(0, len(a) + s, s, 1) for s in range(PUBLIC + 1)]
    return pack_records(curve, records)


def pack_records(curve: Curve, records: list[tuple[int, int, int, int]]) -> bytes:
    out = struct.pack("<I", len(records))
    for matrix, row, wire, c in records:
        out += struct.pack("<III", matrix, row, wire)
        out += (c * 2**512 % curve.r).to_bytes(32, "little")
    return out


def zkey_header(curve: Curve, delta: int = 23, gamma: int = 1) -> bytes:
    size = sizes(curve)[0]
    out = prime(curve.p, size) + prime(curve.r, 32) + struct.pack("<III", WIRES, PUBLIC, DOMAIN)
    out += points(curve, "g1", [17, 19]) + points(curve, "g2", [19, gamma])
    return out + point(curve, "g1", delta) + point(curve, "g2", delta)


def contribution(curve: Curve, delta: int = 23) -> bytes:
    out = points(curve, "g1", [delta, 31, 37]) + point(curve, "g2", 41)
    return out + bytes(range(64)) + struct.pack("<II", 0, 5) + b"\x01\x03abc"


def zkey(curve: Curve) -> bytes:
    record = bytes(range(64, 128)) + struct.pack("<I", 1) + contribution(curve)
    return assemble(
        "zkey",
        [
            (1, struct.pack("<I", 1)),
            (2, zkey_header(curve)),
            (3, points(curve, "g1", [2, 3, 4])),
            (4, coefficients(curve)),
            (5, points(curve, "g1", [5, 6, 7, 8, 9])),
            (6, points(curve, "g1", [0, 10, 11, 12, 13])),
            (7, points(curve, "g2", [0, 10, 11, 12, 13])),
            (8, points(curve, "g1", [14, 15])),
            (9, points(curve, "g1", list(range(20, 28)))),
            (10, record),
        ],
    )


def lagrange_scalar(section: int, level: int, i: int) -> int:
    """Any number that differs everywhere: the reader's business is where points lie."""
    return 1000 * section + 32 * level + i + 1


def ptau(curve: Curve) -> bytes:
    n, size = 2**POWER, sizes(curve)[0]
    powers = [TAU**i for i in range(2 * n - 1)]
    sections = [
        (1, prime(curve.p, size) + struct.pack("<II", POWER, POWER + 1)),
        (2, points(curve, "g1", powers)),
        (3, points(curve, "g2", powers[:n])),
        (4, points(curve, "g1", [ALPHA * power for power in powers[:n]])),
        (5, points(curve, "g1", [BETA * power for power in powers[:n]])),
        (6, point(curve, "g2", BETA)),
        (7, struct.pack("<I", 0)),
    ]
    for section, group in ((12, "g1"), (13, "g2"), (14, "g1"), (15, "g1")):
        top = POWER + 1 if section == 12 else POWER
        scalars = [lagrange_scalar(section, k, i) for k in range(top + 1) for i in range(2**k)]
        sections.append((section, points(curve, group, scalars)))
    return assemble("ptau", sections)


def corpus_file(kind: str, curve: Curve) -> Path:
    return CORPUS / f"{curve.name}.{kind}"


def _write_corpus() -> None:
    from cuzk.formats.iden3.ptau import read_ptau, write_ptau
    from cuzk.formats.iden3.r1cs import read_r1cs, write_r1cs
    from cuzk.formats.iden3.wtns import read_wtns, write_wtns
    from cuzk.formats.iden3.zkey import read_zkey
    from cuzk.formats.iden3.zkey_writer import write_zkey

    CORPUS.mkdir(parents=True, exist_ok=True)
    for name in LIBRARY:
        curve = CURVES[name]
        write_r1cs(corpus_file("r1cs", curve), read_r1cs(r1cs(curve)), outputs=1, private_inputs=1)
        write_wtns(corpus_file("wtns", curve), read_wtns(wtns(curve)))
        write_zkey(corpus_file("zkey", curve), read_zkey(zkey(curve)))
        write_ptau(corpus_file("ptau", curve), read_ptau(ptau(curve)))


if __name__ == "__main__":
    _write_corpus()


def rows(matrix: SparseMatrix) -> list[dict[int, int]]:
    """Per row: wire -> sum of its coefficients."""
    found = []
    for i in range(matrix.rows):
        total: dict[int, int] = {}
        for c, wire in matrix.row(i):
            total[wire] = (total.get(wire, 0) + c) % matrix.values.curve.r
        found.append(total)
    return found
