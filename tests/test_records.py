"""The readers' inner loops on bytes written here, term by term."""

import struct
from collections.abc import Sequence

import numpy as np
import pytest

from cuzk import _core
from cuzk.curves import BN254, Curve
from cuzk.vectors import pack, unpack

Combination = Sequence[tuple[int, int]]  # (wire, coefficient)


def encode(constraints: Sequence[tuple[Combination, Combination, Combination]]) -> bytes:
    parts = []
    for constraint in constraints:
        for combination in constraint:
            parts.append(struct.pack("<I", len(combination)))
            parts += [
                struct.pack("<I", wire) + value.to_bytes(32, "little")
                for wire, value in combination
            ]
    return b"".join(parts)


def as_bytes(data: bytes) -> np.ndarray:
    return np.frombuffer(data, dtype=np.uint8)


def fill(
    curve: Curve, data: bytes, constraints: int, terms: Sequence[int], spare: int = 0
) -> tuple[list[np.ndarray], list[np.ndarray], list[np.ndarray], list[int]]:
    row_ptrs = [np.full(constraints + 1 + spare, 77, np.uint64) for _ in terms]
    wires = [np.zeros(n, np.uint32) for n in terms]
    coefficients = [np.zeros(n, np.uint32) for n in terms]
    values = _core.r1cs_fill(curve.name, as_bytes(data), constraints, row_ptrs, wires, coefficients)
    return row_ptrs, wires, coefficients, unpack(values)


def sample(curve: Curve) -> list[tuple[Combination, Combination, Combination]]:
    r = curve.r
    return [
        ([(3, 5), (1, 1), (3, r - 1)], [], [(2, 5)]),  # unsorted, a wire twice
        ([], [(0, 0), (4, 7)], [(1, r - 1), (2, 0)]),  # zero coefficients are dropped
        ([(0, 1)], [(0, 1)], [(0, 1)]),
    ]


def test_every_term_arrives(curve: Curve) -> None:
    data = encode(sample(curve))
    terms = _core.r1cs_terms(curve.name, as_bytes(data), 3, 5)
    assert terms == (4, 2, 3)
    row_ptrs, wires, coefficients, values = fill(curve, data, 3, terms)
    assert values == [1, curve.r - 1, 5, 7]
    assert [p.tolist() for p in row_ptrs] == [[0, 3, 3, 4], [0, 0, 1, 2], [0, 1, 2, 3]]
    assert [w.tolist() for w in wires] == [[3, 1, 3, 0], [4, 0], [2, 1, 0]]
    assert [c.tolist() for c in coefficients] == [[2, 0, 1, 0], [3, 0], [2, 1, 0]]


def test_room_after_the_rows_is_left_alone(curve: Curve) -> None:
    row_ptrs, *_ = fill(curve, encode(sample(curve)), 3, (4, 2, 3), spare=2)
    assert [p.tolist()[4:] for p in row_ptrs] == [[77, 77]] * 3


def test_no_constraints(curve: Curve) -> None:
    assert _core.r1cs_terms(curve.name, as_bytes(b""), 0, 1) == (0, 0, 0)
    assert fill(curve, b"", 0, (0, 0, 0))[3] == [1, curve.r - 1]


def test_cut_at_every_byte(curve: Curve) -> None:
    data = encode(sample(curve))
    for end in range(len(data)):
        with pytest.raises(ValueError, match=r"^constraint [012], [ABC]: "):
            _core.r1cs_terms(curve.name, as_bytes(data[:end]), 3, 5)
        with pytest.raises(ValueError, match=r"^constraint [012], [ABC]: "):
            fill(curve, data[:end], 3, (4, 2, 3))


@pytest.mark.parametrize(
    ("data", "constraints", "wires", "message"),
    [
        (encode([([], [], [])]) + b"\0", 1, 1, "1 constraints end at byte 12 of 13"),
        (b"", 2**60, 1, "constraint 0, A: the section ends at byte 0"),
        (
            b"\xff" * 40,
            1,
            1,
            "constraint 0, A: 4294967295 terms of 36 bytes, but the section has 36",
        ),
        (encode([([], [(812, 1)], [])]), 1, 812, "constraint 0, B: wire 812 of 812"),
        (encode([([], [], [(2**32 - 1, 1)])]), 1, 812, "constraint 0, C: wire 4294967295 of 812"),
        (
            encode([([(5, BN254.r)], [], [])]),
            1,
            9,
            "A: coefficient of wire 5 is not below the prime",
        ),
        (encode([([(5, 2**256 - 1)], [], [])]), 1, 9, "A: coefficient of wire 5 is not below"),
    ],
)
def test_bad_sections_are_named(data: bytes, constraints: int, wires: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        _core.r1cs_terms("bn254", as_bytes(data), constraints, wires)


def test_coefficient_just_below_the_prime(curve: Curve) -> None:
    data = encode([([(0, curve.r - 2)], [], [])])
    assert (
        fill(curve, data, 1, _core.r1cs_terms(curve.name, as_bytes(data), 1, 1))[3][2]
        == curve.r - 2
    )


def test_short_arrays_are_refused(curve: Curve) -> None:
    data = encode(sample(curve))
    with pytest.raises(ValueError, match="too short"):
        fill(curve, data, 3, (3, 2, 3))
    with pytest.raises(ValueError, match="row_ptrs"):
        _core.r1cs_fill(
            curve.name,
            as_bytes(data),
            3,
            [np.zeros(3, np.uint64)] * 3,
            [np.zeros(9, np.uint32)] * 3,
            [np.zeros(9, np.uint32)] * 3,
        )


def test_values_are_numbered_by_first_use() -> None:
    rng = np.random.default_rng(7)
    pool = pack([int.from_bytes(rng.bytes(32), "little") for _ in range(5000)], 4)
    picks = rng.integers(0, len(pool), 20000)
    records = np.zeros((len(picks), 44), np.uint8)
    records[:, 12:] = pool[picks].view(np.uint8)
    seed = np.concatenate([pool[4:5], pool[9:10], pack([3], 4)])
    out = np.zeros(len(picks), np.uint32)
    values = unpack(_core.number_values(records, 12, seed, out))

    expected: dict[int, int] = {v: k for k, v in enumerate(unpack(seed))}
    numbers = [expected.setdefault(v, len(expected)) for v in unpack(pool[picks])]
    assert out.tolist() == numbers
    assert values == list(expected)


def test_values_that_share_words_stay_apart() -> None:
    """Equal low words, equal high words, permuted words: none may be taken for another."""
    base = [(a, b, c, d) for a in (0, 1, 2**63) for b in (0, 1) for c in (0, 5) for d in (0, 1)]
    values = np.array(base, dtype=np.uint64)
    out = np.zeros(len(base), np.uint32)
    table = _core.number_values(
        values.view(np.uint8).reshape(-1, 32), 0, np.zeros((0, 4), np.uint64), out
    )
    assert out.tolist() == list(range(len(base)))
    assert (table == values).all()


def test_records_that_cannot_hold_a_value() -> None:
    none = np.zeros((0, 4), np.uint64)
    for width, offset in ((31, 0), (44, 13), (44, 2**63)):
        with pytest.raises(ValueError, match="does not fit"):
            _core.number_values(
                np.zeros((1, width), np.uint8), offset, none, np.zeros(1, np.uint32)
            )
    with pytest.raises(ValueError, match="one number per record"):
        _core.number_values(np.zeros((2, 32), np.uint8), 0, none, np.zeros(1, np.uint32))
    with pytest.raises(ValueError, match="seed: value 1 occurs twice"):
        _core.number_values(np.zeros((0, 32), np.uint8), 0, pack([4, 4], 4), np.zeros(0, np.uint32))
