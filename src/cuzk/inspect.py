"""What a file holds, whichever of the known kinds it is: told by its content, not by its name.

    inspect("circuit.zkey")              header, counts, digests, warnings: read in milliseconds
    inspect("circuit.zkey", full=True)   every point, every constraint checked too

Malformed content raises the reader's own FormatError; what is well-formed and yet worth knowing before the
file is trusted is a warning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from typing import Any

from cuzk.curves import BLS12_381, BN254
from cuzk.errors import FormatError
from cuzk.formats import bellman, snarkjs_json
from cuzk.formats.iden3 import ptau, r1cs, wtns, zkey, zkey_header
from cuzk.formats.iden3.ceremony import contributor
from cuzk.formats.iden3.fields import check_points, point_bytes, take_points
from cuzk.formats.iden3.frame import read_frame
from cuzk.formats.points import decode_uncompressed
from cuzk.formats.source import Readable, Source
from cuzk.groth16 import Proof
from cuzk.load import kind_of
from cuzk.membership import EXPECTED
from cuzk.verifier import warnings as key_warnings

PTAU_G2 = (ptau.TAU_G2, ptau.BETA_G2, ptau.LEVELS_TAU_G2)
POINTS_AT_ONCE = 1 << 16
COMPRESSED = (
    0x80  # the first byte's highest bit in a compressed point, never set in an uncompressed one
)


@dataclass(frozen=True)
class Look:
    """One question: which file, how deep, with how many threads."""

    source: Source
    full: bool
    threads: int


@dataclass(frozen=True)
class Part:
    """A section of a binary file."""

    name: str
    bytes: int


@dataclass(frozen=True)
class Inspection:
    """``counts`` are numbers by name; ``checked`` says what ``full`` went through, or is empty."""

    file: str
    kind: str
    bytes: int
    curve: str
    counts: Mapping[str, int]
    digests: Mapping[str, str] = field(default_factory=dict)
    sections: tuple[Part, ...] = ()
    contributions: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    checked: str = ""

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def inspect(what: Readable, *, full: bool = False, threads: int = 1) -> Inspection:
    """Read as much of the file as its kind's header needs; with ``full`` all of it."""
    source = Source.open(what, "a file to inspect")
    return _reader(source)(Look(source, full, threads))


def _reader(source: Source) -> Callable[[Look], Inspection]:
    kind = kind_of(source)
    if kind == "object":
        return _object(source)
    if kind in READERS:
        return READERS[kind]
    if source.size % bellman.PROOF_BYTES == 0 and source.data[0] & COMPRESSED:
        return _proof_bytes
    return _bellman


def _object(source: Source) -> Callable[[Look], Inspection]:
    text = source.data.tobytes()
    if b'"pi_a"' in text:
        return _proof
    if b'"vk_alpha_1"' in text or b'"IC"' in text:
        return _verification_key
    raise FormatError(
        f"{source.name}: expected a proof (pi_a), a verifying key (vk_alpha_1) or a list of public signals, "
        "found other JSON"
    )


def _parts(
    source: Source, kind: str, versions: Iterable[int], names: Mapping[int, str]
) -> tuple[Part, ...]:
    frame = read_frame(source, kind, tuple(versions), names)
    return tuple(
        Part(f"{number} {names.get(number, '(unknown)')}", length)
        for number, (_, length) in frame.table.items()
    )


def _r1cs(look: Look) -> Inspection:
    source = look.source
    header = r1cs.read_r1cs_header(source)
    counts = {
        "wires": header.wires,
        "outputs": header.outputs,
        "public inputs": header.public_inputs,
        "private inputs": header.private_inputs,
        "labels": header.labels,
        "constraints": header.constraints,
        "domain": 1 << (header.constraints + header.public).bit_length(),
    }
    warnings = list(header.warnings)
    if header.custom_gates or header.custom_gate_uses:
        names = ", ".join(header.custom_gates) or "unnamed"
        warnings.append(
            f"custom gates ({names}; {header.custom_gate_uses} uses): groth16 has none, setup refuses"
        )
    elif look.full:
        matrices = r1cs.read_r1cs(source)
        parts = {"a": matrices.a, "b": matrices.b, "c": matrices.c}
        counts |= {f"terms in {name.upper()}": part.terms for name, part in parts.items() if part}
        counts["terms in A"] -= header.public + 1  # the rows that proving adds are not the file's
        counts["distinct coefficients"] = len(matrices.a.values)
    return Inspection(
        source.name, "r1cs", source.size, header.curve.name, counts,
        {"constraints": header.digest}, _parts(source, "r1cs", (r1cs.VERSION,), r1cs.NAMES),
        warnings=tuple(warnings), checked="every term" if look.full else "",
    )  # fmt: skip


def _wtns(look: Look) -> Inspection:
    source = look.source
    witness = wtns.read_wtns(source, threads=look.threads)
    parts = _parts(source, "wtns", wtns.VERSIONS, wtns.NAMES)
    return Inspection(
        source.name, "wtns", source.size, witness.curve.name, {"wires": len(witness)},
        sections=parts, checked="every value" if look.full else "",
    )  # fmt: skip


def _zkey(look: Look) -> Inspection:
    source = look.source
    header = zkey_header.read_zkey_header(source, threads=look.threads)
    counts = {
        "wires": header.wires,
        "public": header.public,
        "coefficients": header.coefficients,
        "domain": 1 << header.log_domain,
    }
    steps = header.ceremony.contributions if header.ceremony else ()
    warnings = list(header.warnings)
    if look.full:
        key = zkey.read_zkey(source, insecure_key=True)
        bad = zkey.check_zkey_points(key, threads=look.threads)
        if bad:
            section, index, reason = bad
            raise FormatError(
                f"{source.name}: section {section} ({zkey_header.NAMES[section]}): expected point {index} {EXPECTED[reason]}, "
                "found otherwise"
            )
        if key.h.is_infinity().all():
            warnings.append("every H point is infinity: the key was made for no constraint")
    digests = {"header and IC": header.digest}
    if header.ceremony:
        digests["circuit (ceremony)"] = header.ceremony.circuit_hash.hex()
    return Inspection(
        source.name, "zkey", source.size, header.curve.name, counts, digests,
        _parts(source, "zkey", (zkey_header.VERSION,), zkey_header.NAMES),
        tuple(f"{'beacon' if step.kind else 'contribution'} {contributor(step)}".rstrip() for step in steps),
        tuple(warnings), "every coefficient and point" if look.full else "",
    )  # fmt: skip


def _ptau(look: Look) -> Inspection:
    source = look.source
    powers = ptau.read_ptau(source)
    counts = {
        "power": powers.power,
        "power of the ceremony": powers.ceremony_power,
        "rows of the largest circuit": 1 << powers.power,
        "contributions": powers.contributions,
        "levels in Lagrange form": len(powers.levels),
    }
    warnings = []
    if powers.tau_g1.affine(1 if powers.power else 0) == powers.curve.g1:
        warnings.append("insecure: tau = 1 (powers without a contribution)")
    if not powers.contributions:
        warnings.append("no contribution is recorded: whoever made it may know tau")
    frame = read_frame(source, "ptau", (ptau.VERSION,), ptau.NAMES)
    if look.full:
        for section in frame.table:
            if section in ptau.NAMES and section not in (ptau.HEADER, ptau.CONTRIBUTIONS):
                group = "g2" if section in PTAU_G2 else "g1"
                cursor = frame.section(section)
                count = cursor.length // point_bytes(powers.curve, group)
                points = take_points(cursor, powers.curve, group, count, "points")
                check_points(points, cursor.where, threads=look.threads)
    return Inspection(
        source.name, "ptau", source.size, powers.curve.name, counts,
        sections=_parts(source, "ptau", (ptau.VERSION,), ptau.NAMES),
        warnings=(*frame.warnings, *warnings), checked="every point" if look.full else "",
    )  # fmt: skip


def _bellman(look: Look) -> Inspection:
    source = look.source
    try:
        layout = bellman.read_layout(source)
    except FormatError as error:
        raise FormatError(
            f"{source.name}: expected .r1cs, .wtns, .zkey, .ptau, snarkjs' JSON or bellman's .params, .vk or "
            f"proof, found none of them (as .params: {str(error).removeprefix(source.name + ': ')})"
        ) from None
    vk = bellman.read_vk(source, threads=look.threads)
    sections = (layout.ic, *layout.vectors.values())
    if look.full:
        for section in sections[1:]:
            _check_section(look, section)
    kind = "params" if layout.vectors else "vk"
    return Inspection(
        source.name, kind, source.size, vk.curve.name,
        {"public": vk.public} | {f"{section.name} points": section.count for section in sections},
        {"file (Filecoin's)": bellman.key_digest(source.data)} if look.full else {},
        tuple(Part(s.name, s.end - s.offset) for s in sections),
        warnings=(*layout.warnings(), *key_warnings(vk)),
        checked="every point" if look.full else "",
    )  # fmt: skip


def _check_section(look: Look, section: bellman.Section) -> None:
    size = bellman.POINT_BYTES[section.group]
    for first in range(0, section.count, POINTS_AT_ONCE):
        last = min(first + POINTS_AT_ONCE, section.count)
        where = f"{look.source.name}: {section.name} from point {first}"
        data = look.source.data[section.offset + first * size : section.offset + last * size]
        points = decode_uncompressed(data, section.group, where, curve=False, subgroup=False)
        check_points(points, where, threads=look.threads)


def _proof_bytes(look: Look) -> Inspection:
    source = look.source
    count = source.size // bellman.PROOF_BYTES
    bellman.read_partition_proofs(source.data.tobytes(), count, source.name)
    return Inspection(
        source.name,
        "proof bytes",
        source.size,
        BLS12_381.name,
        {"proofs": count},
        checked="every point",
    )


def _proof(look: Look) -> Inspection:
    source = look.source
    proof, warnings = _read_proof(source)
    for name, points in (("pi_a", proof.a), ("pi_b", proof.b), ("pi_c", proof.c)):
        check_points(points, f"{source.name}: {name}", threads=look.threads)
    return Inspection(
        source.name, "proof", source.size, proof.curve.name, {"points": 3},
        warnings=warnings, checked="every point",
    )  # fmt: skip


def _read_proof(source: Source) -> tuple[Proof, tuple[str, ...]]:
    if b'"curve"' in source.data.tobytes():
        return snarkjs_json.read_proof(source), ()
    for curve in (BN254, BLS12_381):
        try:
            proof = snarkjs_json.read_proof(source, curve)
            check_points(proof.a, source.name)
        except FormatError:
            continue
        return proof, (f"names no curve: pi_a lies on {curve.title}",)
    return snarkjs_json.read_proof(source, BN254), ()


def _public(look: Look) -> Inspection:
    source = look.source
    try:
        values, curve = snarkjs_json.read_public(source, BN254), "any"
    except FormatError:
        values, curve = snarkjs_json.read_public(source, BLS12_381), BLS12_381.name
    return Inspection(source.name, "public signals", source.size, curve, {"signals": len(values)})


def _verification_key(look: Look) -> Inspection:
    source = look.source
    vk = snarkjs_json.read_verification_key(source, threads=look.threads)
    return Inspection(
        source.name, "verification key", source.size, vk.curve.name, {"public": vk.public},
        {"file": blake2b(source.data.data, digest_size=32).hexdigest()},
        warnings=tuple(key_warnings(vk)), checked="every point",
    )  # fmt: skip


READERS: Mapping[str, Callable[[Look], Inspection]] = {
    "r1cs": _r1cs,
    "wtns": _wtns,
    "raw": _wtns,  # its message says what is missing
    "zkey": _zkey,
    "ptau": _ptau,
    "array": _public,
}
