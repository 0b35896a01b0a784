"""A verifier contract for the Ethereum virtual machine, and proofs as its arguments.

The machine's precompiled contracts know BN254 only: addition (6), multiplication (7) and pairing (8) over
big-endian words of 32 bytes, G1 = x, y and G2 = x.c1, x.c0, y.c1, y.c0 (the imaginary part first, where
snarkjs' JSON and this project put it last); infinity is all zero. The contract has the name and the
interface of snarkjs', ``verifyProof(uint256[2], uint256[2][2], uint256[2], uint256[n])``; the language has
no array of length 0, so without public signals the last argument is ``uint256[]`` and must be empty.

References: EIP-196, EIP-197; iden3/snarkjs for the text of the arguments.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from string import Template

from cuzk.curves import BN254, Curve
from cuzk.errors import FormatError
from cuzk.groth16 import Proof, VerifyingKey
from cuzk.vectors import Points

ADD = """
    /// term = (sum, point, scalar): sum becomes sum + scalar * point.
    function _add(uint256[2] memory sum, uint256 x, uint256 y, uint256 scalar) private view returns (bool done) {
        if (scalar >= R) return false;
        uint256[5] memory term = [sum[0], sum[1], x, y, scalar];
        assembly ("memory-safe") {
            let point := add(term, 0x40)
            done := staticcall(gas(), 7, point, 0x60, point, 0x40)
            done := and(done, staticcall(gas(), 6, term, 0x80, sum, 0x40))
        }
    }
"""


def export_calldata(proof: Proof, public: Sequence[int]) -> str:
    """The arguments of verifyProof as hexadecimal text, equal to what snarkjs prints: A, B, C, signals."""
    _expect_bn254(proof.curve, "a proof")
    for i, value in enumerate(public):
        if not 0 <= value < BN254.r:
            raise FormatError(
                f"calldata: public signal {i}: expected a number below r of BN254, found {value}"
            )
    a, b, c = (_words(point) for point in (proof.a, proof.b, proof.c))
    pair = f"[{_list(b[:2], ', ')},{_list(b[2:], ', ')}]"
    return ",".join([_list(a, ", "), pair, _list(c, ", "), _list(public, ",")])


def export_solidity(vk: VerifyingKey) -> str:
    """The source text of a contract that verifies proofs for this key."""
    _expect_bn254(vk.curve, "a verifying key")
    n = vk.public
    text = files("cuzk.formats").joinpath("templates", "verifier.sol").read_text("utf-8")
    return Template(text).substitute(
        public="1 public signal" if n == 1 else f"{n} public signals",
        q=BN254.p,
        r=BN254.r,
        constants="\n".join(_constants(vk)),
        signals=f"uint256[{n}]" if n else "uint256[]",
        sum="\n".join(_sum(n)),
        add=ADD if n else "",
    )


def _expect_bn254(curve: Curve, what: str) -> None:
    if curve is not BN254:
        raise FormatError(
            f"Solidity: expected {what} on BN254, the curve of the machine's precompiles, found one on {curve.title}"
        )


def _words(points: Points, index: int = 0) -> list[int]:
    """The point's words in the machine's order."""
    affine = points.affine(index)
    if points.group == "g1":
        return list(affine or (0, 0))
    x0, x1, y0, y1 = affine or (0, 0, 0, 0)
    return [x1, x0, y1, y0]


def _list(values: Sequence[int], separator: str) -> str:
    """Snarkjs puts a space between coordinates, and none between signals or points."""
    return "[" + separator.join(f'"0x{value:064x}"' for value in values) + "]"


def _constants(vk: VerifyingKey) -> list[str]:
    named = [
        ("ALPHA", vk.alpha_g1, 0),
        ("BETA", vk.beta_g2, 0),
        ("GAMMA", vk.gamma_g2, 0),
        ("DELTA", vk.delta_g2, 0),
        *((f"IC{i}", vk.ic, i) for i in range(len(vk.ic))),
    ]
    suffixes = {"g1": ("X", "Y"), "g2": ("X1", "X0", "Y1", "Y0")}
    return [
        f"    uint256 private constant {name}_{suffix} = {word};"
        for name, points, index in named
        for suffix, word in zip(suffixes[points.group], _words(points, index), strict=True)
    ]


def _sum(n: int) -> list[str]:
    """Statements that leave IC0 + sum pubSignals[i] IC(i+1) in ``sum``."""
    lines = ["        uint256[2] memory sum = [IC0_X, IC0_Y];"]
    if n == 0:
        lines.append("        if (pubSignals.length != 0) return false;")
    for i in range(n):
        point = f"IC{i + 1}_X, IC{i + 1}_Y"
        lines.append(f"        if (!_add(sum, {point}, pubSignals[{i}])) return false;")
    return lines
