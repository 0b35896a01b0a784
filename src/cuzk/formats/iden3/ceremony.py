"""Section 10 of a .zkey: who contributed to delta.

    64 bytes circuit hash | u32 contributions, each:
    delta after (G1) | g1_s | g1_sx (G1) | g2_spx (G2) | 64 bytes transcript | u32 kind | u32 bytes | parameters

kind 0 is a person's contribution, 1 a beacon; the parameters are (1, length, name), (2, iterations' exponent),
(3, length, beacon hash). Source: https://github.com/iden3/snarkjs (zkey_utils.js)
"""

from __future__ import annotations

import struct

from cuzk.curves import Curve
from cuzk.formats.iden3.fields import point_bytes, take_points
from cuzk.formats.iden3.frame import Cursor
from cuzk.formats.source import octets
from cuzk.groth16 import Ceremony, Contribution

HASH_BYTES = 64
NAME = 1


def take_ceremony(cursor: Cursor, curve: Curve) -> Ceremony:
    """The whole section; the points are not checked."""
    circuit_hash = cursor.take(HASH_BYTES, "circuit hash").tobytes()
    count = cursor.u32("count of contributions")
    least = 3 * point_bytes(curve, "g1") + point_bytes(curve, "g2") + HASH_BYTES + 8
    if count > cursor.left // least:
        raise cursor.error(
            f"at most {cursor.left // least} contributions in {cursor.left} bytes", count
        )
    contributions = tuple(_take_contribution(cursor, curve) for _ in range(count))
    cursor.end()
    return Ceremony(circuit_hash, contributions)


def _take_contribution(cursor: Cursor, curve: Curve) -> Contribution:
    delta_after, g1_s, g1_sx = (
        take_points(cursor, curve, "g1", 1, name) for name in ("delta", "g1_s", "g1_sx")
    )
    g2_spx = take_points(cursor, curve, "g2", 1, "g2_spx")
    transcript = cursor.take(HASH_BYTES, "transcript").tobytes()
    kind = cursor.u32("kind of contribution")
    length = cursor.u32("bytes of parameters")
    parameters = cursor.take(length, "parameters").tobytes()
    return Contribution(delta_after, g1_s, g1_sx, g2_spx, transcript, kind, parameters)


def contributor(contribution: Contribution) -> str:
    """The name given with a contribution, or nothing."""
    parameters = contribution.parameters
    if len(parameters) < 2 or parameters[0] != NAME:
        return ""
    return parameters[2 : 2 + parameters[1]].decode("utf-8", "backslashreplace")


def ceremony_bytes(ceremony: Ceremony) -> bytes:
    """The content of section 10."""
    parts = [ceremony.circuit_hash, struct.pack("<I", len(ceremony.contributions))]
    for step in ceremony.contributions:
        points = (step.delta_after, step.g1_s, step.g1_sx, step.g2_spx)
        parts += [bytes(octets(point.words)) for point in points]
        parts += [
            step.transcript,
            struct.pack("<II", step.kind, len(step.parameters)),
            step.parameters,
        ]
    return b"".join(parts)
