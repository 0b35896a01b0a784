"""Keys and proofs as bellman (zcash, Filecoin) writes them, on BLS12-381.

    .vk      alpha_g1, beta_g1 | beta_g2, gamma_g2 | delta_g1, delta_g2 | ic
    .params  .vk | h | l | a | b_g1 | b_g2
    proof    A 48 | B 96 | C 48 bytes, compressed; proofs of several partitions follow each other bare

ic, h, l, a, b_g1 and b_g2 are a u32 count and that many points. Integers are big-endian; points of keys are
uncompressed (96 bytes in G1, 192 in G2), see cuzk.formats.points. No magic, no checksum: a file is known by
its digest. h has domain - 1 points, l one per private wire. a and b hold no infinity: a column of the
circuit without a term has no point, so only the circuit says which wire a point belongs to. What follows
the last point (zcash's ceremony record) is not read.

References: zkcrypto/bellman groth16 (Parameters::write, VerifyingKey::write, Proof::write);
filecoin-project/rust-fil-proofs parameters.json for the digests.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cuzk.curves import BLS12_381
from cuzk.errors import CircuitError, FormatError
from cuzk.formats.points import (
    decode_compressed,
    decode_into,
    decode_uncompressed,
    encode_compressed,
    encode_uncompressed,
)
from cuzk.formats.source import Readable, Source, write_atomically
from cuzk.groth16 import BELLMAN, Proof, ProvingKey, Query, VerifyingKey
from cuzk.r1cs import ConstraintSystem, Matrices, Matrix
from cuzk.vectors import Points

POINT_BYTES = {"g1": 96, "g2": 192}
HEAD = ("alpha_g1", "beta_g1", "beta_g2", "gamma_g2", "delta_g1", "delta_g2")
HEAD_BYTES = sum(POINT_BYTES[name[-2:]] for name in HEAD)  # 864
VECTORS = {"h": "g1", "l": "g1", "a": "g1", "b_g1": "g1", "b_g2": "g2"}
PROOF_BYTES = 192
HASHED_AT_ONCE = 1 << 26
WRITTEN_AT_ONCE = 1 << 16  # points
CONVERTED_AT_ONCE = 1 << 16  # points: 6 or 12 MiB of mapped pages


@dataclass(frozen=True)
class Section:
    """``count`` points of one group from byte ``offset`` on (the count's own four bytes lie before it)."""

    name: str
    group: str
    offset: int
    count: int

    @property
    def end(self) -> int:
        """The byte after the last point."""
        return self.offset + self.count * POINT_BYTES[self.group]


@dataclass(frozen=True)
class ParamsLayout:
    """Where everything lies in a .params file; ``vectors`` is empty for a .vk."""

    name: str
    ic: Section
    vectors: dict[str, Section]
    digest: str  # hex BLAKE2b-256 of the head and ic
    file_bytes: int

    @property
    def trailing_bytes(self) -> int:
        """Bytes after the last point."""
        last = self.vectors["b_g2"] if self.vectors else self.ic
        return self.file_bytes - last.end

    def warnings(self) -> list[str]:
        """What a user should know before trusting the file."""
        if not self.trailing_bytes:
            return []
        return [
            f"{self.name}: {self.trailing_bytes} bytes follow the last point (a ceremony record?): not read"
        ]


def read_params_layout(what: Readable) -> ParamsLayout:
    """Counts and offsets of a .params file, each checked against the file's size; no point is read."""
    return _layout(Source.open(what, "a .params file"), vk_only=False)


def read_layout(source: Source) -> ParamsLayout:
    """The same for a .params or a .vk file, whichever it is: one that ends after ic is a .vk."""
    return _layout(source, vk_only=None)


def read_vk(what: Readable, *, threads: int = 1, check_ic: bool = True) -> VerifyingKey:
    """The verifying key of a .vk file, or of a .params file (which begins with it); every point checked.

    Without ``check_ic`` IC's are not: for a look at a key that does not prove or verify.
    """
    source = Source.open(what, "a verifying key in bellman's format")
    return _read_head(source, _layout(source, vk_only=None), threads, check_ic=check_ic)[0]


def read_params(
    what: Readable, matrices: ConstraintSystem, *, full: bool = False, threads: int = 1
) -> ProvingKey:
    """The proving key for this circuit.

    Points of the verifying key are always checked. The others are checked for their range, which comes
    with the conversion to Montgomery form, and with ``full`` for curve and subgroup too: without it trust
    rests on the file's digest. CircuitError where counts do not fit the circuit's.
    """
    source = Source.open(what, "a .params file")
    layout = _layout(source, vk_only=False)
    _check_counts(layout, matrices)
    vk, beta_g1, delta_g1 = _read_head(source, layout, threads)
    points = {
        name: _read_section(source, section, full=full, threads=threads)
        for name, section in layout.vectors.items()
    }
    b_wires = _dense(matrices.b, matrices.wires)
    return ProvingKey(
        vk=vk,
        beta_g1=beta_g1,
        delta_g1=delta_g1,
        a=Query(points["a"], _dense(matrices.a, matrices.wires)),
        b_g1=Query(points["b_g1"], b_wires),
        b_g2=Query(points["b_g2"], b_wires),
        l=Query(points["l"], range(matrices.public + 1, matrices.wires)),
        h=points["h"],
        recipe=BELLMAN,
        log_domain=matrices.log_domain,
        generator=BLS12_381.bellman_generator,
        matrices=matrices if isinstance(matrices, Matrices) else None,
        ceremony=None,
        source=source.name,
        file_bytes=source.size,
    )


def vk_bytes(vk: VerifyingKey, beta_g1: Points, delta_g1: Points) -> bytes:
    """The content of a .vk file; beta and delta in G1 are part of it, though no verifier reads them."""
    if vk.curve is not BLS12_381:
        raise FormatError(f".vk: expected a key on BLS12-381, found one on {vk.curve.title}")
    head = (vk.alpha_g1, beta_g1, vk.beta_g2, vk.gamma_g2, delta_g1, vk.delta_g2)
    parts = [_encoded(points, name) for name, points in zip(HEAD, head, strict=True)]
    return b"".join([*parts, _count(vk.ic), _encoded(vk.ic, "ic")])


def params_chunks(key: ProvingKey) -> Iterator[bytes]:
    """The content of a .params file, piece by piece. Only keys of bellman's recipe have one."""
    if key.recipe != BELLMAN:
        raise FormatError(
            f".params: expected a key for bellman's quotient (H in powers of tau), found {key.source}, made for {key.recipe}"
        )
    yield vk_bytes(key.vk, key.beta_g1, key.delta_g1)
    vectors = (key.h, key.l.points, key.a.points, key.b_g1.points, key.b_g2.points)
    for name, points in zip(VECTORS, vectors, strict=True):
        yield _count(points)
        for start in range(0, len(points), WRITTEN_AT_ONCE):
            yield _encoded(points[start : start + WRITTEN_AT_ONCE], name, start)


def write_vk(path: Path, key: ProvingKey) -> None:
    """The .vk file of a proving key, in place only when whole."""
    write_atomically(path, [vk_bytes(key.vk, key.beta_g1, key.delta_g1)])


def write_params(path: Path, key: ProvingKey) -> None:
    """The .params file of a proving key, in place only when whole."""
    write_atomically(path, params_chunks(key))


def read_proof_bytes(data: bytes, where: str = "proof") -> Proof:
    """One proof of 192 bytes; its points are checked (range, curve, subgroup) and none is infinity."""
    return read_partition_proofs(data, 1, where)[0]


def read_partition_proofs(data: bytes, partitions: int, where: str = "proof") -> list[Proof]:
    """The proofs of so many partitions, 192 bytes each, in order."""
    if len(data) != partitions * PROOF_BYTES:
        raise FormatError(
            f"{where}: expected {partitions * PROOF_BYTES} bytes ({partitions} of {PROOF_BYTES}), found {len(data)}"
        )
    proofs = []
    for k in range(partitions):
        blob = data[k * PROOF_BYTES : (k + 1) * PROOF_BYTES]
        place = where if partitions == 1 else f"{where}: partition {k}"
        spans = (("a", "g1", 0, 48), ("b", "g2", 48, 144), ("c", "g1", 144, 192))
        points = []
        for name, group, start, end in spans:
            point = decode_compressed(blob[start:end], group, f"{place}: {name}")
            _refuse_infinity(point, f"{place}: {name}")
            points.append(point)
        proofs.append(Proof(*points))
    return proofs


def write_proof_bytes(proof: Proof) -> bytes:
    """192 bytes: A, B, C compressed."""
    if proof.curve is not BLS12_381:
        raise FormatError(
            f"proof bytes: expected a proof on BLS12-381, found one on {proof.curve.title}"
        )
    parts = (("a", proof.a), ("b", proof.b), ("c", proof.c))
    for name, point in parts:
        _refuse_infinity(point, f"proof: {name}")
    return b"".join(encode_compressed(point) for _, point in parts)


def key_digest(data: NDArray[np.uint8] | bytes) -> str:
    """Filecoin's name for a key file: the first 32 hexadecimal digits of its BLAKE2b-512."""
    return file_digest(data)[:32]


def file_digest(data: NDArray[np.uint8] | bytes) -> str:
    """The 128 hexadecimal digits of a file's BLAKE2b-512."""
    view = data.data if isinstance(data, np.ndarray) else memoryview(data)
    state = blake2b()
    for start in range(0, len(view), HASHED_AT_ONCE):
        state.update(view[start : start + HASHED_AT_ONCE])
    return state.hexdigest()


def _layout(source: Source, *, vk_only: bool | None) -> ParamsLayout:
    """``vk_only`` None: whichever it is; a file that ends after ic is a .vk."""
    size = source.size
    if size < HEAD_BYTES:
        raise FormatError(
            f"{source.name}: expected the {HEAD_BYTES} bytes from alpha_g1 to delta_g2, found {size} bytes"
        )
    ic = _section(source, "ic", "g1", HEAD_BYTES)
    if ic.count == 0:
        raise FormatError(f"{source.name}: ic: expected at least one point, found none")
    vectors: dict[str, Section] = {}
    if vk_only is False or ic.end < size:
        end = ic.end
        for name, group in VECTORS.items():
            vectors[name] = _section(source, name, group, end)
            end = vectors[name].end
        if vectors["b_g1"].count != vectors["b_g2"].count:
            raise FormatError(
                f"{source.name}: b_g2: expected {vectors['b_g1'].count} points as in b_g1, found {vectors['b_g2'].count}"
            )
    digest = blake2b(source.at(0, ic.end).data, digest_size=32).hexdigest()
    return ParamsLayout(source.name, ic, vectors, digest, size)


def _section(source: Source, name: str, group: str, offset: int) -> Section:
    size = source.size
    if size - offset < 4:
        raise FormatError(
            f"{source.name}: {name}: expected a count of four bytes at offset {offset}, found the file's end at {size}"
        )
    count = int.from_bytes(source.at(offset, 4).tobytes(), "big")
    section = Section(name, group, offset + 4, count)
    if section.end > size:
        raise FormatError(
            f"{source.name}: {name}: expected {count} points ({count * POINT_BYTES[group]} bytes), found {size - offset - 4} bytes: the file is cut short or the count is wrong"
        )
    return section


def _read_head(
    source: Source, layout: ParamsLayout, threads: int, *, check_ic: bool = True
) -> tuple[VerifyingKey, Points, Points]:
    """(vk, beta_g1, delta_g1), every point on its curve, in the subgroup and not infinity."""
    points = {}
    offset = 0
    for name in HEAD:
        section = Section(name, name[-2:], offset, 1)
        points[name] = _read_section(source, section, full=True, threads=threads)
        offset = section.end
    vk = VerifyingKey(
        curve=BLS12_381,
        alpha_g1=points["alpha_g1"],
        beta_g2=points["beta_g2"],
        gamma_g2=points["gamma_g2"],
        delta_g2=points["delta_g2"],
        ic=_read_section(source, layout.ic, full=check_ic, threads=threads),
    )
    return vk, points["beta_g1"], points["delta_g1"]


def _read_section(source: Source, section: Section, *, full: bool, threads: int) -> Points:
    where = f"{source.name}: {section.name}"
    if not full:
        return _converted(source, section, where, threads)
    data = source.at(section.offset, section.end - section.offset)
    points = decode_uncompressed(data, section.group, where, threads=threads)
    _refuse_infinity(points, where)
    return points


def _converted(source: Source, section: Section, where: str, threads: int) -> Points:
    """Piece by piece: the mapped pages behind it are given back, so that memory holds the points once."""
    words = np.empty((section.count, BLS12_381.point_words(section.group)), dtype=np.uint64)
    size = POINT_BYTES[section.group]
    for start in range(0, section.count, CONVERTED_AT_ONCE):
        end = min(start + CONVERTED_AT_ONCE, section.count)
        first, last = (section.offset + n * size for n in (start, end))
        data = source.at(first, last - first)
        decode_into(words[start:end], data, section.group, where, threads=threads, first=start)
        source.forget(first, last - first)
    words.flags.writeable = False
    return Points(BLS12_381, section.group, words)


def _refuse_infinity(points: Points, where: str, start: int = 0) -> None:
    flags = points.is_infinity()
    if flags.any():
        index = f": point {start + int(flags.argmax())}" if len(points) > 1 else ""
        raise FormatError(f"{where}{index}: expected a point other than infinity, found infinity")


def _check_counts(layout: ParamsLayout, matrices: ConstraintSystem) -> None:
    if matrices.curve is not BLS12_381:
        raise CircuitError(
            f"{layout.name}: expected a circuit over BLS12-381, found one over {matrices.curve.title}"
        )
    needed = {
        "ic": (matrices.public + 1, "public signals and one"),
        "h": ((1 << matrices.log_domain) - 1, "domain less one"),
        "l": (matrices.wires - matrices.public - 1, "private wires"),
        "a": (len(_dense(matrices.a, matrices.wires)), "wires with a term in A"),
        "b_g1": (len(_dense(matrices.b, matrices.wires)), "wires with a term in B"),
    }
    for name, (expected, why) in needed.items():
        found = (layout.ic if name == "ic" else layout.vectors[name]).count
        if found != expected:
            raise CircuitError(
                f"{layout.name}: {name}: expected {expected} points ({why} of the circuit {matrices.digest[:16]}), found {found} in the key {layout.digest[:16]}: they do not belong together"
            )


def _dense(matrix: Matrix, wires: int) -> NDArray[np.uint32]:
    return np.flatnonzero(matrix.used(wires)).astype(np.uint32)


def _encoded(points: Points, where: str, start: int = 0) -> bytes:
    _refuse_infinity(points, f"key: {where}", start)
    return encode_uncompressed(points)


def _count(points: Points) -> bytes:
    if len(points) >= 1 << 32:
        raise FormatError(f".params: expected fewer than 2^32 points, found {len(points)}")
    return len(points).to_bytes(4, "big")
