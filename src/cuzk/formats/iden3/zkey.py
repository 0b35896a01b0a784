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

from dataclasses import replace

from cuzk.errors import InsecureKeyError
from cuzk.formats.iden3.coefficients import read_coefficients
from cuzk.formats.iden3.fields import whole_section
from cuzk.formats.iden3.frame import Frame
from cuzk.formats.iden3.zkey_header import (
    B1,
    B2,
    COEFFICIENTS,
    HEADER,
    IC,
    A,
    Digest,
    H,
    L,
    ZkeyHeader,
    read_zkey_header,
    vectors,
    zkey_frame,
    zkey_header,
)
from cuzk.formats.source import Readable
from cuzk.groth16 import SNARKJS, ProvingKey, Query
from cuzk.membership import first_bad

__all__ = ["ZkeyHeader", "check_zkey_points", "read_zkey", "read_zkey_header"]


def read_zkey(what: Readable, *, insecure_key: bool = False, threads: int = 1) -> ProvingKey:
    """The key, its points still in the file (see fields.MappedPoints).

    Points of sections 5 to 9 are not checked (see :func:`check_zkey_points`): a prover verifies what it
    makes. A key under which anyone can forge (``insecurity``) raises InsecureKeyError unless ``insecure_key``.
    ``threads`` check IC: 50 us a point on BLS12-381, nothing to speak of on BN254 (one core of an EPYC).
    """
    frame = zkey_frame(what)
    header = zkey_header(frame, threads)
    if not insecure_key:
        refuse_insecure_header(frame, header)
    curve, wires, public = header.curve, header.wires, header.public
    a, b_g1, b_g2, private, h = (
        whole_section(frame.section(number), curve, group, count)
        for number, (group, count) in vectors(header).items()
    )
    coefficients = frame.section(COEFFICIENTS)
    digest = Digest(frame, COEFFICIENTS, threads=threads)
    matrices = read_coefficients(
        coefficients, curve, wires=wires, public=public, domain=1 << header.log_domain
    )
    matrices = replace(matrices, digest=digest.wait())
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
        file_bytes=frame.source.size,
    )


def refuse_insecure_header(frame: Frame, header: ZkeyHeader) -> None:
    """InsecureKeyError for a key under which anyone can forge."""
    if header.insecure:
        raise InsecureKeyError(
            f"{frame.where(HEADER)}: expected secrets that nobody knows, found {header.insecure}: anyone can forge proofs "
            "for this key; contribute to it, or say that an insecure key is meant"
        )


def check_zkey_points(key: ProvingKey, *, threads: int = 1) -> tuple[int, int, str] | None:
    """(section, index, reason) of the first point that is none of the curve's, or None; reads all points.

    Reasons: "range" (a coordinate not below p), "curve", "subgroup".
    """
    sections = {
        IC: key.vk.ic,
        A: key.a.points,
        B1: key.b_g1.points,
        B2: key.b_g2.points,
        L: key.l.points,
        H: key.h,
    }
    for section, points in sections.items():
        index, reason = first_bad(points, threads=threads)
        if index >= 0:
            return section, index, reason
    return None
