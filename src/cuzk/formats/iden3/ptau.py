""".ptau: the powers of tau of a universal ceremony, phase 1 of every Groth16 key.

With n = 2^power:

    1  base prime, u32 power, u32 the ceremony's power
    2  tau^i G1, i < 2n - 1      4  alpha tau^i G1, i < n      6  beta G2
    3  tau^i G2, i < n           5  beta tau^i G1, i < n       7  contributions

and after `prepare phase2`, in the Lagrange basis of each domain of 2^k points, k = 0..power (section 12:
power + 1 too, taking the missing power 2n - 1 for zero), level k from point 2^k - 1 on in natural order:

    12  tau G1     13  tau G2     14  alpha tau G1     15  beta tau G1

Source: https://github.com/iden3/snarkjs (powersoftau_utils.js)
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from cuzk.curves import Curve
from cuzk.errors import FormatError
from cuzk.formats.iden3.fields import (
    check_points,
    point_bytes,
    prime_bytes,
    take_base_field,
    whole_section,
)
from cuzk.formats.iden3.frame import Cursor, Frame, frame_chunks, read_frame
from cuzk.formats.source import Chunk, Readable, Source, octets, write_atomically
from cuzk.groth16 import Lagrange, PowersOfTau
from cuzk.membership import first_bad
from cuzk.vectors import Points

HEADER, TAU_G1, TAU_G2, ALPHA_TAU_G1, BETA_TAU_G1, BETA_G2, CONTRIBUTIONS = range(1, 8)
LEVELS_TAU_G1, LEVELS_TAU_G2, LEVELS_ALPHA_TAU_G1, LEVELS_BETA_TAU_G1 = range(12, 16)
NAMES = {
    HEADER: "header",
    TAU_G1: "tauG1",
    TAU_G2: "tauG2",
    ALPHA_TAU_G1: "alphaTauG1",
    BETA_TAU_G1: "betaTauG1",
    BETA_G2: "betaG2",
    CONTRIBUTIONS: "contributions",
    LEVELS_TAU_G1: "Lagrange tauG1",
    LEVELS_TAU_G2: "Lagrange tauG2",
    LEVELS_ALPHA_TAU_G1: "Lagrange alphaTauG1",
    LEVELS_BETA_TAU_G1: "Lagrange betaTauG1",
}
PREPARED = (LEVELS_TAU_G1, LEVELS_TAU_G2, LEVELS_ALPHA_TAU_G1, LEVELS_BETA_TAU_G1)
VERSION = 1
PARTIAL_HASH_BYTES, CHALLENGE_BYTES = 216, 64


@dataclass(frozen=True)
class PtauHeader:
    """What a .ptau says about itself."""

    curve: Curve
    power: int
    ceremony_power: int
    contributions: int
    prepared: bool  # for phase 2: the Lagrange sections are there
    warnings: tuple[str, ...]


def read_ptau_header(what: Readable) -> PtauHeader:
    """The counts; points are not looked at."""
    return _header(_frame(what))


def read_ptau(what: Readable) -> PowersOfTau:
    """The powers, prepared for phase 2 or not; points stay in the file until used.

    Checked: sizes of all sections, betaG2 and the first two points of sections 2 to 5 (curve, subgroup),
    and that tauG1 and tauG2 begin with the generators.
    """
    frame = _frame(what)
    header = _header(frame)
    curve, power, n = header.curve, header.power, 1 << header.power
    levels, top = _levels(frame, curve, power)
    powers = PowersOfTau(
        curve=curve,
        power=power,
        ceremony_power=header.ceremony_power,
        tau_g1=whole_section(frame.section(TAU_G1), curve, "g1", 2 * n - 1),
        tau_g2=whole_section(frame.section(TAU_G2), curve, "g2", n),
        alpha_tau_g1=whole_section(frame.section(ALPHA_TAU_G1), curve, "g1", n),
        beta_tau_g1=whole_section(frame.section(BETA_TAU_G1), curve, "g1", n),
        beta_g2=whole_section(frame.section(BETA_G2), curve, "g2", 1),
        contributions=header.contributions,
        levels=levels,
        top_tau_g1=top,
        source=frame.source.name,
    )
    _check_heads(frame, powers)
    return powers


def _frame(what: Readable) -> Frame:
    return read_frame(Source.open(what, "a .ptau file"), "ptau", (VERSION,), NAMES)


def _header(frame: Frame) -> PtauHeader:
    cursor = frame.section(HEADER)
    curve = take_base_field(cursor)
    power, ceremony_power = cursor.u32("power"), cursor.u32("the ceremony's power")
    cursor.end()
    if power > curve.two_adicity:
        raise cursor.error(f"a power up to {curve.two_adicity}", power)
    contributions = _count_contributions(frame.section(CONTRIBUTIONS), curve)
    prepared = any(section in frame for section in PREPARED)
    return PtauHeader(curve, power, ceremony_power, contributions, prepared, frame.warnings)


def check_ptau_points(powers: PowersOfTau, *, threads: int = 1) -> tuple[int, int, str] | None:
    """(section, index, reason) of the first point that is none of the curve's, or None; reads all points.

    Reasons: "range" (a coordinate not below p), "curve", "subgroup".
    """
    levels = powers.levels
    parts: list[tuple[int, list[Points]]] = [
        (TAU_G1, [powers.tau_g1]),
        (TAU_G2, [powers.tau_g2]),
        (ALPHA_TAU_G1, [powers.alpha_tau_g1]),
        (BETA_TAU_G1, [powers.beta_tau_g1]),
        (BETA_G2, [powers.beta_g2]),
        (LEVELS_TAU_G1, [*(level.tau_g1 for level in levels), powers.top_tau_g1]),
        (LEVELS_TAU_G2, [level.tau_g2 for level in levels]),
        (LEVELS_ALPHA_TAU_G1, [level.alpha_tau_g1 for level in levels]),
        (LEVELS_BETA_TAU_G1, [level.beta_tau_g1 for level in levels]),
    ]
    for section, vectors in parts:
        before = 0
        for points in vectors:
            index, reason = first_bad(points, threads=threads)
            if index >= 0:
                return section, before + index, reason
            before += len(points)
    return None


def _levels(frame: Frame, curve: Curve, power: int) -> tuple[tuple[Lagrange, ...], Points]:
    if not any(section in frame for section in PREPARED):
        return (), Points.empty(curve, "g1")
    n = 1 << power
    counts = dict.fromkeys(PREPARED, 2 * n - 1) | {LEVELS_TAU_G1: 4 * n - 1}
    tau_g1, tau_g2, alpha, beta = (
        whole_section(frame.section(number), curve, group, counts[number])
        for number, group in zip(PREPARED, ("g1", "g2", "g1", "g1"), strict=True)
    )
    spans = [slice((1 << k) - 1, (2 << k) - 1) for k in range(power + 2)]
    levels = tuple(Lagrange(tau_g1[s], tau_g2[s], alpha[s], beta[s]) for s in spans[:-1])
    return levels, tau_g1[spans[-1]]


def _count_contributions(cursor: Cursor, curve: Curve) -> int:
    """Walk the records: their points and hashes matter only to who verifies the ceremony itself."""
    count = cursor.u32("count of contributions")
    g1, g2 = point_bytes(curve, "g1"), point_bytes(curve, "g2")
    state_and_key = (3 * g1 + 2 * g2) + (6 * g1 + 3 * g2)
    fixed = state_and_key + PARTIAL_HASH_BYTES + CHALLENGE_BYTES + 4
    if count > cursor.left // (fixed + 4):
        most = cursor.left // (fixed + 4)
        raise cursor.error(f"at most {most} contributions in {cursor.left} bytes", count)
    for _ in range(count):
        cursor.take(fixed, "contribution")
        cursor.take(cursor.u32("bytes of parameters"), "contribution's parameters")
    cursor.end()
    return count


def _check_heads(frame: Frame, powers: PowersOfTau) -> None:
    curve = powers.curve
    vectors = {
        TAU_G1: powers.tau_g1,
        TAU_G2: powers.tau_g2,
        ALPHA_TAU_G1: powers.alpha_tau_g1,
        BETA_TAU_G1: powers.beta_tau_g1,
        BETA_G2: powers.beta_g2,
    }
    for section, points in vectors.items():
        check_points(points[:2], frame.where(section))
        if points.affine() is None:
            raise FormatError(
                f"{frame.where(section)}: expected point 0 to be a point, found infinity"
            )
    for section, generator in ((TAU_G1, curve.g1), (TAU_G2, curve.g2)):
        if vectors[section].affine() != generator:
            raise FormatError(
                f"{frame.where(section)}: expected point 0 to be {curve.title}'s generator, found another point"
            )


def write_ptau(path: str | os.PathLike[str], powers: PowersOfTau) -> None:
    """Write powers made here, prepared where ``levels`` are there; contribution records are not kept."""
    if powers.contributions:
        raise FormatError(
            f"{path}: expected powers without contribution records, found {powers.contributions}: they are "
            "not read, so cannot be written"
        )
    write_atomically(path, frame_chunks("ptau", VERSION, [*_powers(powers), *_prepared(powers)]))


def _powers(powers: PowersOfTau) -> Iterator[tuple[int, list[Chunk]]]:
    curve = powers.curve
    counts = struct.pack("<II", powers.power, powers.ceremony_power)
    yield HEADER, [prime_bytes(curve.p, curve.fp_words) + counts]
    yield TAU_G1, [octets(powers.tau_g1.words)]
    yield TAU_G2, [octets(powers.tau_g2.words)]
    yield ALPHA_TAU_G1, [octets(powers.alpha_tau_g1.words)]
    yield BETA_TAU_G1, [octets(powers.beta_tau_g1.words)]
    yield BETA_G2, [octets(powers.beta_g2.words)]
    yield CONTRIBUTIONS, [struct.pack("<I", 0)]


def _prepared(powers: PowersOfTau) -> Iterator[tuple[int, list[Chunk]]]:
    levels = powers.levels
    if not levels:
        return
    tau_g1 = [*(level.tau_g1 for level in levels), powers.top_tau_g1]
    yield LEVELS_TAU_G1, [octets(points.words) for points in tau_g1]
    yield LEVELS_TAU_G2, [octets(level.tau_g2.words) for level in levels]
    yield LEVELS_ALPHA_TAU_G1, [octets(level.alpha_tau_g1.words) for level in levels]
    yield LEVELS_BETA_TAU_G1, [octets(level.beta_tau_g1.words) for level in levels]
