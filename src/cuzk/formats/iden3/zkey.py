""".zkey: a proving key of Groth16 as snarkjs makes it.

    1   u32 protocol (1 groth16, 2 plonk, 10 fflonk)
    2   base prime, scalar prime, u32 wires, u32 public, u32 domain,
        alpha1, beta1 (G1), beta2, gamma2 (G2), delta1 (G1), delta2 (G2)
    3   IC: public + 1 G1           6   B1: wires G1             9   H: domain G1
    4   A's and B's coefficients    7   B2: wires G2             10  contributions
    5   A: wires G1                 8   L: wires - public - 1 G1

H_i = L_{2i+1}(tau) / delta over the 2n-th roots of unity, n = domain: the scalars that go with it are the
evaluations of A B - C on the odd coset. Points: see fields.py. Source: https://github.com/iden3/snarkjs
(zkey_utils.js)
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

from cuzk.curves import Curve
from cuzk.errors import FormatError, InsecureKeyError
from cuzk.formats.iden3.ceremony import take_ceremony
from cuzk.formats.iden3.coefficients import read_coefficients
from cuzk.formats.iden3.fields import (
    check_points,
    first_bad,
    point_bytes,
    take_base_field,
    take_points,
    take_scalar_field,
    whole_section,
)
from cuzk.formats.iden3.frame import Cursor, Frame, read_frame
from cuzk.formats.source import Readable, Source
from cuzk.groth16 import SNARKJS, Ceremony, ProvingKey, Query, VerifyingKey
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


def read_zkey_header(what: Readable) -> ZkeyHeader:
    """What ``inspect`` shows; sections 4 to 9 are measured against the header's counts, not read."""
    return _header(_frame(what))


def read_zkey(what: Readable, *, insecure_key: bool = False) -> ProvingKey:
    """The key, its points still in the file (see fields.MappedPoints).

    Points of sections 5 to 9 are not checked (see :func:`check_zkey_points`): a prover verifies what it
    makes. A key with delta = gamma or delta = generator raises InsecureKeyError unless ``insecure_key``.
    """
    frame = _frame(what)
    header = _header(frame)
    if header.insecure and not insecure_key:
        raise InsecureKeyError(
            f"{frame.where(HEADER)}: expected a secret delta, found {header.insecure}: anyone can forge proofs "
            "for this key; contribute to it, or say that an insecure key is meant"
        )
    curve, wires, public = header.curve, header.wires, header.public
    a, b_g1, b_g2, private, h = (
        whole_section(frame.section(number), curve, group, count)
        for number, (group, count) in _vectors(header).items()
    )
    coefficients = frame.section(COEFFICIENTS)
    matrices = read_coefficients(
        coefficients,
        curve,
        wires=wires,
        public=public,
        domain=1 << header.log_domain,
        digest=_digest(frame, COEFFICIENTS),
    )
    frame.source.forget(coefficients.offset, coefficients.length)
    return ProvingKey(
        vk=header.vk,
        beta_g1=header.beta_g1,
        delta_g1=header.delta_g1,
        a=Query(a, range(wires)),
        b_g1=Query(b_g1, range(wires)),
        b_g2=Query(b_g2, range(wires)),
        l=Query(private, range(public + 1, wires)),
        h=h,
        recipe=SNARKJS,
        log_domain=header.log_domain,
        generator=curve.generator,
        matrices=matrices,
        ceremony=header.ceremony,
        source=frame.source.name,
        digest=header.digest,
        file_bytes=frame.source.size,
    )


def _vectors(header: ZkeyHeader) -> dict[int, tuple[str, int]]:
    """Section -> group and number of its points."""
    return {
        A: ("g1", header.wires),
        B1: ("g1", header.wires),
        B2: ("g2", header.wires),
        L: ("g1", header.wires - header.public - 1),
        H: ("g1", 1 << header.log_domain),
    }


def check_zkey_points(key: ProvingKey, *, threads: int = 1) -> tuple[int, int, str] | None:
    """(section, index, reason) of the first point that is none of the curve's, or None; reads all points.

    Reasons: "range" (a coordinate not below p), "curve", "subgroup".
    """
    vectors = {A: key.a.points, B1: key.b_g1.points, B2: key.b_g2.points, L: key.l.points, H: key.h}
    for section, points in {IC: key.vk.ic, **vectors}.items():
        index, reason = first_bad(points, threads=threads)
        if index >= 0:
            return section, index, reason
    return None


def _frame(what: Readable) -> Frame:
    frame = read_frame(Source.open(what, "a .zkey file"), "zkey", (VERSION,), NAMES)
    cursor = frame.section(PROTOCOL)
    protocol = cursor.u32("protocol")
    if protocol != GROTH16:
        name = PROTOCOLS.get(protocol, f"number {protocol}")
        raise FormatError(f"{cursor.where}: protocol is {name}, only groth16 is supported")
    cursor.end()
    return frame


def _header(frame: Frame) -> ZkeyHeader:
    cursor = frame.section(HEADER)
    curve = _take_curve(cursor)
    wires, public, domain = (cursor.u32(name) for name in ("wires", "public", "domain"))
    if wires <= public:
        raise cursor.error(f"more than {public} wires for {public} public signals", wires)
    log_domain = domain.bit_length() - 1
    if domain < 1 or domain & (domain - 1) or log_domain > curve.two_adicity:
        raise cursor.error(f"a domain of a power of two, at most 2^{curve.two_adicity}", domain)
    points = {
        name: take_points(cursor, curve, group, 1, name) for name, group in HEADER_POINTS.items()
    }
    cursor.end()
    for name, point in points.items():
        check_points(point, f"{cursor.where}: {name}")
        if point.is_infinity()[0]:
            raise cursor.error(f"{name} to be a point", "infinity")
    section = frame.section(IC)
    ic = whole_section(section, curve, "g1", public + 1)
    check_points(ic, section.where)
    vk = VerifyingKey(
        curve, points["alpha1"], points["beta2"], points["gamma2"], points["delta2"], ic
    )
    ceremony = (
        take_ceremony(frame.section(CONTRIBUTIONS), curve) if CONTRIBUTIONS in frame else None
    )
    header = ZkeyHeader(
        vk, points["beta1"], points["delta1"], wires, public, log_domain,
        frame.section(COEFFICIENTS).u32("count of records"), ceremony,
        _insecure(vk, points["delta1"]), _digest(frame, HEADER, IC), (),
    )  # fmt: skip
    for number, (group, count) in _vectors(header).items():
        size = point_bytes(curve, group)
        frame.section(number).expect_length(count * size, f"{count} points of {size} bytes")
    return replace(header, warnings=(*frame.warnings, *_warnings(header)))


def _take_curve(cursor: Cursor) -> Curve:
    curve = take_base_field(cursor)
    scalar = take_scalar_field(cursor)
    if scalar != curve:
        raise cursor.error(f"the scalar field of {curve.title}", f"that of {scalar.title}")
    return curve


def _insecure(vk: VerifyingKey, delta_g1: Points) -> str:
    delta, curve = vk.delta_g2.affine(), vk.curve
    if delta == vk.gamma_g2.affine():
        return "delta = gamma (a key without a contribution)"
    if delta == curve.g2 or delta_g1.affine() == curve.g1:
        return "delta = 1 (a key without a contribution)"
    return ""


def _warnings(header: ZkeyHeader) -> list[str]:
    found = [f"insecure: {header.insecure}"] if header.insecure else []
    ceremony = header.ceremony
    if ceremony is None:
        found.append("no record of contributions (section 10)")
    elif not ceremony.contributions:
        found.append("no contribution is recorded")
    elif ceremony.contributions[-1].delta_after.affine() != header.delta_g1.affine():
        found.append("the last recorded contribution's delta is not the header's")
    unbound = header.vk.ic.is_infinity()[1:].nonzero()[0] + 1
    found += [
        f"IC point {index} is infinity: public signal {index} is not bound" for index in unbound
    ]
    return found


def _digest(frame: Frame, *sections: int) -> str:
    state = hashlib.blake2b(digest_size=32)
    for number in sections:
        cursor = frame.section(number)
        state.update(cursor.take(cursor.length, "content").data)
    return state.hexdigest()
