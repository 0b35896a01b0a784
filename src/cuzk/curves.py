"""Curves as data: nothing here but numbers that a paper prints, and what follows from them in one step.

BN254 (also bn128, alt_bn128) and BLS12-381 are y^2 = x^3 + b over Fp with the pairing groups

    G1 = E(Fp)[r],    G2 = E'(Fp2)[r],    E': y^2 = x^3 + b * xi^(+-1),    Fp2 = Fp[u] / (u^2 + 1).

TOY is no curve at all: its scalar field has 16 bits and its "points" are scalars (the discrete
logarithms themselves), so that every number of a proof can be checked by hand; e(a, b) = a * b.

Sources: EIP-197 (BN254), draft-irtf-cfrg-pairing-friendly-curves (BLS12-381).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from cuzk.errors import FormatError

GROUPS = ("g1", "g2")


@dataclass(frozen=True, eq=False)
class Curve:
    """One row of data, one object each, compared by identity.  ``p`` base field, ``r`` scalar field, ``x`` the parameter of the family."""

    name: str
    title: str
    snarkjs_name: str
    p: int
    r: int
    x: int
    b: int
    xi: tuple[int, int]  # the sextic twist's non-residue c0 + c1*u
    twist: str  # "D": b' = b / xi,  "M": b' = b * xi
    generator: int  # smallest quadratic non-residue of Fr: snarkjs' roots of unity come from it
    bellman_generator: int  # multiplicative generator that bellman, arkworks and gnark take
    g1: tuple[int, ...]
    g2: tuple[int, ...]  # x.c0, x.c1, y.c0, y.c1
    synonyms: tuple[str, ...] = field(default=())

    def __reduce__(self) -> str | tuple[object, ...]:
        """Pickled and copied by name: a curve is compared by identity everywhere."""
        return (
            (curve_named, (self.name,)) if CURVES.get(self.name) is self else super().__reduce__()
        )

    @cached_property
    def fp_words(self) -> int:
        """64-bit words of a base field element."""
        return -(-self.p.bit_length() // 64)

    @cached_property
    def fr_words(self) -> int:
        """64-bit words of a scalar."""
        return -(-self.r.bit_length() // 64)

    @cached_property
    def two_adicity(self) -> int:
        """S with 2^S the largest power of two dividing r - 1: the largest NTT has 2^S points."""
        return ((self.r - 1) & (1 - self.r)).bit_length() - 1

    @property
    def is_toy(self) -> bool:
        """True where points are scalars."""
        return not self.twist

    def coordinates(self, group: str) -> int:
        """Base field elements in an affine point: 2 in G1, 4 in G2 (1 on TOY)."""
        if self.is_toy:
            return 1
        return {"g1": 2, "g2": 4}[group]

    def point_words(self, group: str) -> int:
        """64-bit words of an affine point."""
        return self.coordinates(group) * self.fp_words

    def root_of_unity(self, log_n: int, generator: int | None = None) -> int:
        """A primitive 2^log_n-th root: g^((r-1)/2^S), squared down; g defaults to snarkjs' choice."""
        if not 0 <= log_n <= self.two_adicity:
            raise FormatError(
                f"{self.title} has NTT domains up to 2^{self.two_adicity}, asked for 2^{log_n}"
            )
        return pow(generator or self.generator, (self.r - 1) >> log_n, self.r)

    def coset_shift(self, log_n: int, generator: int | None = None) -> int:
        """Where the odd coset of 2^log_n lies: a 2n-th root, or generator^2 (as snarkjs) at n = 2^S."""
        if log_n < self.two_adicity:
            return self.root_of_unity(log_n + 1, generator)
        return pow(generator or self.generator, 2, self.r)


BN254 = Curve(
    name="bn254",
    title="BN254",
    snarkjs_name="bn128",
    p=21888242871839275222246405745257275088696311157297823662689037894645226208583,
    r=21888242871839275222246405745257275088548364400416034343698204186575808495617,
    x=4965661367192848881,
    b=3,
    xi=(9, 1),
    twist="D",
    generator=5,
    bellman_generator=5,
    g1=(1, 2),
    g2=(
        10857046999023057135944570762232829481370756359578518086990519993285655852781,
        11559732032986387107991004021392285783925812861821192530917403151452391805634,
        8495653923123431417604973247489272438418190587263600148770280649306958101930,
        4082367875863433681332203403145435568316851327593401208105741076214120093531,
    ),
    synonyms=("bn128", "altbn128", "bn254snark", "bn256"),
)

BLS12_381 = Curve(
    name="bls12_381",
    title="BLS12-381",
    snarkjs_name="bls12381",
    p=int(
        "1a0111ea397fe69a4b1ba7b6434bacd764774b84f38512bf6730d2a0f6b0f624"
        "1eabfffeb153ffffb9feffffffffaaab",
        16,
    ),
    r=0x73EDA753299D7D483339D80809A1D80553BDA402FFFE5BFEFFFFFFFF00000001,
    x=-0xD201000000010000,
    b=4,
    xi=(1, 1),
    twist="M",
    generator=5,
    bellman_generator=7,
    g1=(
        int(
            "17f1d3a73197d7942695638c4fa9ac0fc3688c4f9774b905a14e3a3f171bac58"
            "6c55e83ff97a1aeffb3af00adb22c6bb",
            16,
        ),
        int(
            "08b3f481e3aaa0f1a09e30ed741d8ae4fcf5e095d5d00af600db18cb2c04b3ed"
            "d03cc744a2888ae40caa232946c5e7e1",
            16,
        ),
    ),
    g2=(
        int(
            "024aa2b2f08f0a91260805272dc51051c6e47ad4fa403b02b4510b647ae3d177"
            "0bac0326a805bbefd48056c8c121bdb8",
            16,
        ),
        int(
            "13e02b6052719f607dacd3a088274f65596bd0d09920b61ab5da61bbdc7f5049"
            "334cf11213945d57e5ac7d055d042b7e",
            16,
        ),
        int(
            "0ce5d527727d6e118cc9cdc6da2e351aadfd9baa8cbdd3a76d429a695160d12c"
            "923ac9cc3baca289e193548608b82801",
            16,
        ),
        int(
            "0606c4a02ea734cc32acd2b02bc28b99cb3e287e85a763af267492ab572e99ab"
            "3f370d275cec1da1aaa9075ff05f79be",
            16,
        ),
    ),
    synonyms=("bls12381",),
)

TOY = Curve(
    name="toy",
    title="TOY",
    snarkjs_name="toy",
    p=64513,
    r=64513,  # 63 * 2^10 + 1
    x=0,
    b=0,
    xi=(0, 0),
    twist="",
    generator=5,
    bellman_generator=5,
    g1=(1,),
    g2=(1,),
)

CURVES = {curve.name: curve for curve in (BN254, BLS12_381, TOY)}


def curve_named(text: str, where: str = "curve") -> Curve:
    """The curve of that name; "bn128", "BN-128", "alt_bn128", "bls12-381" and the like are one curve each."""
    plain = "".join(c for c in text.lower() if c.isalnum())
    for curve in CURVES.values():
        if plain in (curve.name.replace("_", ""), *curve.synonyms):
            return curve
    raise FormatError(f"{where}: expected bn128 or bls12381, found {text!r}")


def curve_with_scalar_field(modulus: int, where: str) -> Curve:
    """The curve whose scalar field has this prime."""
    for curve in CURVES.values():
        if curve.r == modulus:
            return curve
    raise FormatError(
        f"{where}: expected the scalar field of BN254 or BLS12-381, found the prime {modulus:#x}"
    )


def curve_with_base_field(modulus: int, where: str) -> Curve:
    """The curve whose base field has this prime."""
    for curve in CURVES.values():
        if curve.p == modulus:
            return curve
    raise FormatError(
        f"{where}: expected the base field of BN254 or BLS12-381, found the prime {modulus:#x}"
    )
