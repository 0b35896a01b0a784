"""The small sections of a .zkey: protocol, header, IC and contributions; what ``inspect`` shows.

The layout of the whole file is at the top of zkey.py. Points of the header and IC are the verifying key:
they are always checked.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from threading import Thread

import numpy as np

from cuzk.curves import Curve
from cuzk.errors import FormatError
from cuzk.formats.iden3.ceremony import take_ceremony
from cuzk.formats.iden3.fields import (
    check_points,
    point_bytes,
    take_base_field,
    take_points,
    take_scalar_field,
    whole_section,
)
from cuzk.formats.iden3.frame import Cursor, Frame, read_frame
from cuzk.formats.source import Readable, Source
from cuzk.groth16 import Ceremony, VerifyingKey, insecurity, weaknesses
from cuzk.vectors import Points

PROTOCOL, HEADER, IC, COEFFICIENTS, A, B1, B2, L, H, CONTRIBUTIONS = range(1, 11)
NAMES = {
    PROTOCOL: "protocol",
    HEADER: "header",
    IC: "IC",
    COEFFICIENTS: "coefficients",
    A: "A",
    B1: "B1",
    B2: "B2",
    L: "L",
    H: "H",
    CONTRIBUTIONS: "contributions",
}
VERSION = 1
GROTH16 = 1
PROTOCOLS = {GROTH16: "groth16", 2: "plonk", 10: "fflonk"}
HEADER_POINTS = {
    "alpha1": "g1",
    "beta1": "g1",
    "beta2": "g2",
    "gamma2": "g2",
    "delta1": "g1",
    "delta2": "g2",
}


@dataclass(frozen=True)
class ZkeyHeader:
    """Sections 1, 2, 3 and 10, and how large the others are; header points and IC are checked."""

    vk: VerifyingKey
    beta_g1: Points
    delta_g1: Points
    wires: int
    public: int
    log_domain: int
    coefficients: int
    ceremony: Ceremony | None
    insecure: str  # why anyone can forge proofs for this key, or nothing
    digest: str  # hex BLAKE2b-256 of sections 2 and 3
    warnings: tuple[str, ...]

    @property
    def curve(self) -> Curve:
        """The curve all points lie on."""
        return self.vk.curve


def read_zkey_header(what: Readable, *, threads: int = 1, check_ic: bool = True) -> ZkeyHeader:
    """Sections 4 to 9 are measured against the header's counts, not read.

    Without ``check_ic`` IC's points are not checked: for a look at a key that does not prove or verify.
    """
    return zkey_header(zkey_frame(what), threads, check_ic=check_ic)


def zkey_frame(what: Readable) -> Frame:
    """The section table of a Groth16 key; other protocols are refused by name."""
    frame = read_frame(Source.open(what, "a .zkey file"), "zkey", (VERSION,), NAMES)
    cursor = frame.section(PROTOCOL)
    protocol = cursor.u32("protocol")
    if protocol != GROTH16:
        name = PROTOCOLS.get(protocol, f"number {protocol}")
        raise FormatError(f"{cursor.where}: protocol is {name}, only groth16 is supported")
    cursor.end()
    return frame


def zkey_header(frame: Frame, threads: int, *, check_ic: bool = True) -> ZkeyHeader:
    """Sections 1, 2, 3 and 10, and the sizes of the others."""
    cursor = frame.section(HEADER)
    curve = _take_curve(cursor)
    wires, public, log_domain = _take_counts(cursor, curve)
    points = _take_points(cursor, curve)
    section = frame.section(IC)
    ic = _held(whole_section(section, curve, "g1", public + 1))
    if check_ic:
        check_points(ic, section.where, threads=threads)
    alpha, beta, gamma, delta = (points[n] for n in ("alpha1", "beta2", "gamma2", "delta2"))
    vk = VerifyingKey(curve, alpha, beta, gamma, delta, ic)
    recorded = CONTRIBUTIONS in frame
    header = ZkeyHeader(
        vk=vk,
        beta_g1=points["beta1"],
        delta_g1=points["delta1"],
        wires=wires,
        public=public,
        log_domain=log_domain,
        coefficients=frame.section(COEFFICIENTS).u32("count of records"),
        ceremony=take_ceremony(frame.section(CONTRIBUTIONS), curve) if recorded else None,
        insecure=_insecure(vk, points["delta1"]),
        digest=digest(frame, HEADER, IC),
        warnings=(),
    )
    for number, (group, count) in vectors(header).items():
        size = point_bytes(curve, group)
        frame.section(number).expect_length(count * size, f"{count} points of {size} bytes")
    return replace(header, warnings=(*frame.warnings, *_warnings(header)))


def _take_counts(cursor: Cursor, curve: Curve) -> tuple[int, int, int]:
    """Wires, public signals, log2 of the domain."""
    wires, public, domain = (cursor.u32(name) for name in ("wires", "public", "domain"))
    if wires <= public:
        raise cursor.error(f"more than {public} wires for {public} public signals", wires)
    log_domain = domain.bit_length() - 1
    if domain < 1 or domain & (domain - 1) or log_domain > curve.two_adicity:
        raise cursor.error(f"a domain of a power of two, at most 2^{curve.two_adicity}", domain)
    return wires, public, log_domain


def _take_points(cursor: Cursor, curve: Curve) -> dict[str, Points]:
    """The six points that end section 2, checked; none may be infinity."""
    points = {
        name: _held(take_points(cursor, curve, group, 1, name))
        for name, group in HEADER_POINTS.items()
    }
    cursor.end()
    for name, point in points.items():
        check_points(point, f"{cursor.where}: {name}")
        if point.is_infinity()[0]:
            raise cursor.error(f"{name} to be a point", "infinity")
    return points


def _held(points: Points) -> Points:
    """A copy: what was checked stays as it was, whatever becomes of the file."""
    words = points.words
    fixed = np.frombuffer(words.tobytes(), dtype=np.uint64).reshape(words.shape)
    return Points(points.curve, points.group, fixed)


def vectors(header: ZkeyHeader) -> dict[int, tuple[str, int]]:
    """Section -> group and number of its points."""
    return {
        A: ("g1", header.wires),
        B1: ("g1", header.wires),
        B2: ("g2", header.wires),
        L: ("g1", header.wires - header.public - 1),
        H: ("g1", 1 << header.log_domain),
    }


def _take_curve(cursor: Cursor) -> Curve:
    curve = take_base_field(cursor)
    scalar = take_scalar_field(cursor)
    if scalar != curve:
        raise cursor.error(f"the scalar field of {curve.title}", f"that of {scalar.title}")
    return curve


def _insecure(vk: VerifyingKey, delta_g1: Points) -> str:
    if delta_g1.affine() == vk.curve.g1:
        return insecurity(vk) or "delta1 = 1 (a key without a contribution)"
    return insecurity(vk)


def _warnings(header: ZkeyHeader) -> list[str]:
    found = [f"insecure: {header.insecure}"] if header.insecure else []
    ceremony = header.ceremony
    if ceremony is None:
        found.append("no record of contributions (section 10)")
    elif not ceremony.contributions:
        found.append("no contribution is recorded")
    elif ceremony.contributions[-1].delta_after.affine() != header.delta_g1.affine():
        found.append("the last recorded contribution's delta is not the header's")
    return found + weaknesses(header.vk)


def digest(frame: Frame, *sections: int) -> str:
    """Hex BLAKE2b-256 of the content of some sections."""
    state = hashlib.blake2b(digest_size=32)
    for number in sections:
        cursor = frame.section(number)
        state.update(cursor.take(cursor.length, "content").data)
    return state.hexdigest()


class Digest:
    """A section's :func:`digest`, made beside other work where ``threads`` allow a second one.

    17 MB of coefficients take 20 ms, as long as reading them (2^17 constraints, one core of an EPYC).
    """

    def __init__(self, frame: Frame, section: int, *, threads: int) -> None:
        self._frame, self._section, self._hex = frame, section, ""
        self._thread = Thread(target=self._make, daemon=True) if threads > 1 else None
        if self._thread:
            self._thread.start()

    def wait(self) -> str:
        """The digest, hex."""
        if self._thread:
            self._thread.join()
        else:
            self._make()
        return self._hex

    def _make(self) -> None:
        self._hex = digest(self._frame, self._section)
