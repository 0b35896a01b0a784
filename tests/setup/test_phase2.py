"""setup() from powers of known secrets must give the key that the secrets give directly."""

from __future__ import annotations

import dataclasses
import hashlib

import numpy as np
import pytest

import circuits
from cuzk import _core
from cuzk.curves import BLS12_381, BN254, TOY, Curve
from cuzk.errors import CircuitError, FormatError
from cuzk.groth16 import Contribution, PowersOfTau, ProvingKey
from cuzk.r1cs import SparseMatrix
from cuzk.setup import (
    Secrets,
    contribute,
    initial_key,
    insecure_setup,
    make_powers_of_tau,
    setup,
)
from cuzk.setup.draw import chacha_block, cofactor, point_from
from cuzk.setup.overrun import difference
from cuzk.setup.powers import multiples_of_z
from cuzk.setup.transcript import challenge_point, transcript_of, uncompressed
from cuzk.vectors import Points, Scalars
from keys import expect_equal

SECRETS = Secrets(tau=0xABCDEF0123456789, alpha=271, beta=314, delta=1618)


def unprepared(ptau: PowersOfTau) -> PowersOfTau:
    return dataclasses.replace(ptau, levels=(), top_tau_g1=ptau.top_tau_g1[:0])


def generator_times(curve: Curve, group: str, *scalars: int) -> Points:
    base = Points.from_affine(curve, group, [getattr(curve, group)])
    out = np.empty((len(scalars), curve.point_words(group)), dtype=np.uint64)
    words = Scalars.from_ints(curve, scalars).words
    _core.fixed_base(curve.name, group, base.words, words, out, 1)
    return Points(curve, group, out)


def same(a: Points, b: Points) -> bool:
    return bool(np.array_equal(a.words, b.words))


@pytest.mark.parametrize("prepared", [True, False])
@pytest.mark.parametrize("constraints", [5, 6, 13])
@pytest.mark.parametrize("threads", [1, 2])
def test_key_equals_the_one_from_the_secrets(
    curve: Curve, constraints: int, prepared: bool, threads: int
) -> None:
    matrices = circuits.chain(curve, constraints, public=2).matrices()
    ptau = make_powers_of_tau(curve, 5, SECRETS, threads=threads)
    initial = initial_key(matrices, ptau if prepared else unprepared(ptau), threads=threads)
    expect_equal(
        contribute(initial, x=SECRETS.delta, threads=threads), insecure_setup(matrices, SECRETS)
    )
    expect_equal(initial, insecure_setup(matrices, dataclasses.replace(SECRETS, delta=1)))


@pytest.mark.parametrize("prepared", [True, False])
def test_powers_that_just_suffice(curve: Curve, prepared: bool) -> None:
    """At n = 2^power the file has no tau^(2n-1): H lacks that term, which no quotient needs."""
    matrices = circuits.chain(curve, 14).matrices()
    ptau = make_powers_of_tau(curve, 4, SECRETS)
    assert matrices.log_domain == ptau.power
    key = contribute(initial_key(matrices, ptau if prepared else unprepared(ptau)), x=SECRETS.delta)
    expected = insecure_setup(matrices, SECRETS)
    expect_equal(dataclasses.replace(key, h=expected.h), expected)
    # H_i = L_(2i+1)(tau) - w^(2i+1) tau^(2n-1) / 2n
    n, r = 16, curve.r
    fine, over = curve.root_of_unity(5), pow(2 * n * SECRETS.delta, -1, r)
    term = pow(SECRETS.tau, 2 * n - 1, r) * over
    missing = generator_times(curve, "g1", *(pow(fine, 2 * i + 1, r) * term for i in range(n)))
    sums = np.empty_like(key.h.words)
    numbers = np.arange(2 * n, dtype=np.uint32).reshape(2, n).T.reshape(-1).copy()
    _core.product_points(
        curve.name, "g1", np.arange(0, 2 * n + 1, 2, dtype=np.uint64), numbers,
        np.zeros(2 * n, dtype=np.uint32), Scalars.from_ints(curve, [1], montgomery=True).words,
        np.concatenate([key.h.words, missing.words]), sums, 1,
    )  # fmt: skip
    assert np.array_equal(sums, expected.h.words)


def test_powers_of_tau(curve: Curve) -> None:
    power, r = 3, curve.r
    tau, alpha, beta = SECRETS.tau, SECRETS.alpha, SECRETS.beta
    ptau = make_powers_of_tau(curve, power, SECRETS)
    powers = [pow(tau, i, r) for i in range(15)]
    assert same(ptau.tau_g1, generator_times(curve, "g1", *powers))
    assert same(ptau.tau_g2, generator_times(curve, "g2", *powers[:8]))
    assert same(ptau.alpha_tau_g1, generator_times(curve, "g1", *(alpha * x for x in powers[:8])))
    assert same(ptau.beta_tau_g1, generator_times(curve, "g1", *(beta * x for x in powers[:8])))
    assert same(ptau.beta_g2, generator_times(curve, "g2", beta))
    assert [len(level.tau_g1) for level in ptau.levels] == [1, 2, 4, 8]

    def by_ntt(points: Points, log_n: int) -> Points:
        words = np.zeros((1 << log_n, points.words.shape[1]), dtype=np.uint64)
        given = points.words[: 1 << log_n]
        words[: len(given)] = given
        root = Scalars.from_ints(curve, [curve.root_of_unity(log_n)], montgomery=True)
        _core.group_ntt(curve.name, points.group, words, root.words, True, 1)
        return Points(curve, points.group, words)

    for log_n, level in enumerate(ptau.levels):
        assert same(level.tau_g1, by_ntt(ptau.tau_g1, log_n))
        assert same(level.tau_g2, by_ntt(ptau.tau_g2, log_n))
        assert same(level.alpha_tau_g1, by_ntt(ptau.alpha_tau_g1, log_n))
        assert same(level.beta_tau_g1, by_ntt(ptau.beta_tau_g1, log_n))
    assert same(ptau.top_tau_g1, by_ntt(ptau.tau_g1, power + 1))


def test_powers_of_tau_are_fresh_and_bounded() -> None:
    first, second = make_powers_of_tau(BN254, 1), make_powers_of_tau(BN254, 1)
    assert not same(first.tau_g1[1:2], second.tau_g1[1:2])
    assert len(make_powers_of_tau(BN254, 0).tau_g1) == 1
    assert len(make_powers_of_tau(TOY, 2).top_tau_g1) == 8
    for power in (-1, 28):
        with pytest.raises(FormatError, match=f"power of tau: expected 0 to 27 .* found {power}"):
            make_powers_of_tau(BN254, power)


def pairing_holds(curve: Curve, *pairs: tuple[Points, Points]) -> bool:
    g1 = np.concatenate([a.words for a, _ in pairs])
    g2 = np.concatenate([b.words for _, b in pairs])
    return _core.pairing_product_is_one(curve.name, g1, g2, 1)


def minus(points: Points) -> Points:
    out = np.empty_like(points.words)
    word = Scalars.from_ints(points.curve, [-1]).words
    _core.scale_points(points.curve.name, points.group, points.words, word, out, 1)
    return Points(points.curve, points.group, out)


def expect_proof_of_knowledge(
    key: ProvingKey, step: Contribution, earlier: tuple[Contribution, ...], before: Points
) -> None:
    assert key.ceremony is not None
    curve = key.curve
    transcript = transcript_of(key.ceremony.circuit_hash, earlier, step.g1_s, step.g1_sx)
    assert step.transcript == transcript
    sp = challenge_point(transcript, curve)
    assert pairing_holds(curve, (minus(step.g1_s), step.g2_spx), (step.g1_sx, sp))
    assert pairing_holds(curve, (minus(before), step.g2_spx), (step.delta_after, sp))
    assert not pairing_holds(curve, (minus(step.delta_after), step.g2_spx), (before, sp))


def test_contributions_follow_each_other(curve: Curve) -> None:
    matrices = circuits.cubic(curve).matrices()
    ptau = make_powers_of_tau(curve, 3)
    initial = initial_key(matrices, ptau)
    assert initial.ceremony is not None
    assert initial.ceremony.contributions == ()
    first = setup(matrices, ptau, name="first")
    second = contribute(first, name="", threads=2)
    assert first.ceremony is not None
    assert second.ceremony is not None
    one, two = second.ceremony.contributions
    assert first.ceremony.contributions == (one,)
    assert first.ceremony.circuit_hash == initial.ceremony.circuit_hash
    assert (one.parameters, two.parameters) == (b"\x01\x05first", b"")
    expect_proof_of_knowledge(second, one, (), generator_times(curve, "g1", 1))
    expect_proof_of_knowledge(second, two, (one,), one.delta_after)
    assert same(two.delta_after, second.delta_g1)
    # delta is one number in both groups, and L and H are over it
    g1, g2 = generator_times(curve, "g1", 1), generator_times(curve, "g2", 1)
    assert pairing_holds(curve, (minus(g1), second.vk.delta_g2), (second.delta_g1, g2))
    for after, before in ((second.l.points, initial.l.points), (second.h, initial.h)):
        for i in range(len(after)):
            pair = (after[i : i + 1], second.vk.delta_g2), (minus(before[i : i + 1]), g2)
            assert pairing_holds(curve, *pair)
    for name in ("a", "b_g1", "b_g2"):
        assert getattr(second, name).points is getattr(initial, name).points or same(
            getattr(second, name).points, getattr(first, name).points
        )
    assert len({initial.digest, first.digest, second.digest}) == 3
    assert setup(matrices, ptau).digest != first.digest  # fresh randomness


def test_circuit_hash_binds_the_circuit(curve: Curve) -> None:
    ptau = make_powers_of_tau(curve, 3, SECRETS)

    def hash_of(matrices: object) -> bytes:
        key = initial_key(matrices, ptau)  # type: ignore[arg-type]
        assert key.ceremony is not None
        return key.ceremony.circuit_hash

    matrices = circuits.cubic(curve).matrices()
    b = matrices.b
    signs = b.coefficients.copy()
    signs[0] ^= 1
    other = dataclasses.replace(matrices, b=SparseMatrix(b.row_ptr, b.wires, signs, b.values))
    assert hash_of(matrices) == hash_of(circuits.cubic(curve, 4).matrices())
    assert hash_of(matrices) != hash_of(other)


def test_what_does_not_fit_is_refused() -> None:
    matrices = circuits.chain(BN254, 14, public=2).matrices()
    small = make_powers_of_tau(BN254, 3)
    message = (
        "powers of tau made here: expected power 5 or more for 14 constraints [+] 2 public signals [+] 1 "
        "= 17 rows, found power 3, which holds 8 rows: take a larger .ptau"
    )
    with pytest.raises(CircuitError, match=message):
        setup(matrices, small)
    with pytest.raises(CircuitError, match=r"the circuit's curve BN254, found BLS12-381"):
        setup(matrices, make_powers_of_tau(BLS12_381, 1))
    large = make_powers_of_tau(BN254, 5)
    with pytest.raises(CircuitError, match="no C"):
        setup(dataclasses.replace(matrices, c=None), large)
    with pytest.raises(FormatError, match="found TOY"):
        setup(circuits.cubic(TOY).matrices(), make_powers_of_tau(TOY, 3))
    with pytest.raises(FormatError, match="name: expected at most 64 bytes, found 65"):
        setup(matrices, large, name="x" * 65)
    with pytest.raises(
        FormatError, match="expected a record of contributions to continue, found none"
    ):
        contribute(insecure_setup(matrices, SECRETS))


@pytest.mark.parametrize(
    ("section", "name"),
    [
        (r"12 \(Lagrange tauG1\)", "tau_g1"),
        (r"13 \(Lagrange tauG2\)", "tau_g2"),
        (r"14 \(Lagrange alphaTauG1\)", "alpha_tau_g1"),
        (r"15 \(Lagrange betaTauG1\)", "beta_tau_g1"),
    ],
)
def test_damaged_levels_are_refused(curve: Curve, section: str, name: str) -> None:
    matrices = circuits.chain(curve, 6).matrices()
    ptau = make_powers_of_tau(curve, 4)
    for level in (3, 4) if name == "tau_g1" else (3,):
        levels = list(ptau.levels)
        points: Points = getattr(levels[level], name)
        words = points.words.copy()
        words[5, 0] ^= 1
        damaged = dataclasses.replace(points, words=words)
        levels[level] = dataclasses.replace(levels[level], **{name: damaged})
        with pytest.raises(
            FormatError, match=f"powers of tau made here: section {section}.* damaged"
        ):
            initial_key(matrices, dataclasses.replace(ptau, levels=tuple(levels)))
    initial_key(matrices, ptau)


def test_no_constraints(curve: Curve) -> None:
    matrices = circuits.chain(curve, 1).matrices()
    nothing = dataclasses.replace(
        matrices,
        constraints=0,
        a=SparseMatrix(
            np.arange(3, dtype=np.uint64),
            np.arange(2, dtype=np.uint32),
            np.zeros(2, dtype=np.uint32),
            matrices.a.values,
        ),
        b=SparseMatrix(
            np.zeros(1, np.uint64),
            np.zeros(0, np.uint32),
            np.zeros(0, np.uint32),
            matrices.b.values,
        ),
        c=SparseMatrix(
            np.zeros(1, np.uint64),
            np.zeros(0, np.uint32),
            np.zeros(0, np.uint32),
            matrices.b.values,
        ),
    )
    ptau = make_powers_of_tau(curve, 2, SECRETS)
    key = contribute(initial_key(nothing, ptau), x=SECRETS.delta)
    expect_equal(key, insecure_setup(nothing, SECRETS))
    assert key.b_g2.points.is_infinity().all()


def test_chacha20() -> None:
    """RFC 8439, section 2.3.2; its block count and nonce are the last four words of the state."""
    key = [int.from_bytes(bytes(range(4 * i, 4 * i + 4)), "little") for i in range(8)]
    counter = 1 | 0x09000000 << 32 | 0x4A000000 << 64
    words = chacha_block(key, counter)
    assert words[:4] == [0xE4E7F110, 0x15593BD1, 0x1FDD0F50, 0xC47120A3]
    assert words[12:] == [0xD19C12B5, 0xB94E16DE, 0xE883D0CB, 0x4E3C50A2]


def test_drawn_points() -> None:
    """The low half of x.c0 as snarkjs draws it from these 32 bytes; all points have order r."""
    expected = {
        "bn254": [
            0xCC1AE3AC6299BD583D34F48A00AA754D,
            0x70D56CEDD5E39B5191A7C53BA92C5E22,
            0xA00A4E2115AD2CBFC8B675F175CE95C8,
        ],
        "bls12_381": [
            0x7D0171836924D736459DA2A478A1AB99,
            0xFDCDE7D437A0CDAF39FB5674196C21B2,
            0x768AE2536B576CE4B3961D29D75871FF,
        ],
    }
    for curve in (BN254, BLS12_381):
        seeds = [bytes((i * 7 + k * 31) & 255 for i in range(32)) for k in range(3)]
        drawn = [point_from(curve, seed) for seed in seeds]
        assert [point[0] % 2**128 for point in drawn] == expected[curve.name]
        points = Points.from_affine(curve, "g2", drawn)
        assert _core.first_bad_point(curve.name, "g2", points.words, True, 1) == (-1, "")


def test_cofactors() -> None:
    # EIP-197's curve; draft-irtf-cfrg-pairing-friendly-curves for BLS12-381
    assert cofactor(BN254) == 0x30644E72E131A029B85045B68181585E06CEECDA572A2489345F2299C0F9FA8D
    assert cofactor(BLS12_381) == int(
        "5d543a95414e7f1091d50792876a202cd91de4547085abaa68a205b2e5a7ddfa628f1cb4d9e82ef2"
        "1537e293a6691ae1616ec6e786f0c70cf1c38e31c7238e5",
        16,
    )


@pytest.mark.parametrize(
    ("curve", "power", "digest"),
    [
        (BN254, 15, "11dcf4801718d74daf30fcb9521127687377e54ffba1ac3041bcd65ebbdc1a44"),
        (BN254, 16, "24a7e796b2f3392c4fba99e0125ce4966a37ccd32fdd3112a80e5776cf9c991f"),
        (
            BLS12_381,
            15,
            "078c45b954450b00a9bd22bfde42cff1beea5af8b36734a36299704a86b32c2e"
            "d657b77a6b70906f39d1d4bf4a5e6700",
        ),
    ],
    ids=["bn254-15", "bn254-16", "bls12_381-15"],
)
def test_bytes_behind_the_section(curve: Curve, power: int, digest: str) -> None:
    """x of what snarkjs' own subtraction gives for these bytes less the generator of G1."""
    generator = Points.from_affine(curve, "g1", [curve.g1])
    found = b"".join(uncompressed(difference(curve, power, generator)))
    assert found[: len(found) // 2].hex() == digest


def test_hashed_encoding(curve: Curve) -> None:
    points = Points.from_affine(curve, "g2", [curve.g2, None])
    size = 8 * curve.fp_words
    order = (1, 0, 3, 2)
    expected = b"".join(curve.g2[i].to_bytes(size, "big") for i in order) + bytes(4 * size)
    assert b"".join(uncompressed(points)) == expected
    assert hashlib.blake2b(expected).digest_size == 64


def test_differences_of_powers(curve: Curve) -> None:
    ptau = make_powers_of_tau(curve, 3, SECRETS)
    tau, r = SECRETS.tau, curve.r
    whole = [(pow(tau, 4 + i, r) - pow(tau, i, r)) % r for i in range(4)]
    assert same(multiples_of_z(ptau, 2, 1), generator_times(curve, "g1", *whole))
    cut = [(pow(tau, 8 + i, r) * (i < 7) - pow(tau, i, r)) % r for i in range(8)]
    assert same(multiples_of_z(ptau, 3, 1), generator_times(curve, "g1", *cut))
