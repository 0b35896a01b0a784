"""Damaged files: every reader answers with an object or a CuzkError, soon, and without allocating much.

The seeds are the files of the corpus; damage knows the frame (lengths, sections) and plain bytes.
"""

from __future__ import annotations

import struct
import tracemalloc
from collections.abc import Callable
from typing import Any

import iden3_files as files
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cuzk.curves import CURVES
from cuzk.errors import CuzkError
from cuzk.formats.iden3.ptau import read_ptau
from cuzk.formats.iden3.r1cs import read_r1cs, read_r1cs_header
from cuzk.formats.iden3.wtns import read_wtns
from cuzk.formats.iden3.zkey import check_zkey_points, read_zkey, read_zkey_header


def use_r1cs(data: bytes) -> None:
    read_r1cs_header(data)
    matrices = read_r1cs(data)
    assert matrices.c is not None
    for matrix in (matrices.a, matrices.b, matrices.c):
        assert int(matrix.row_ptr[-1]) == matrix.terms
        assert not matrix.terms or int(matrix.wires.max()) < matrices.wires
        assert not matrix.terms or int(matrix.coefficients.max()) < len(matrix.values)


def use_wtns(data: bytes) -> None:
    witness = read_wtns(data)
    assert all(value < witness.curve.r for value in witness.ints())


def use_zkey(data: bytes) -> None:
    read_zkey_header(data)
    key = read_zkey(data, insecure_key=True)
    vectors = (key.a.points, key.b_g1.points, key.b_g2.points, key.l.points, key.h)
    assert all(points.words.shape == (len(points), points.words.shape[1]) for points in vectors)
    assert key.matrices is not None
    assert key.matrices.rows <= 1 << key.log_domain
    for matrix in (key.matrices.a, key.matrices.b):
        assert int(matrix.row_ptr[-1]) == matrix.terms
        assert not matrix.terms or int(matrix.wires.max()) < len(key.a.points)


def use_ptau(data: bytes) -> None:
    powers = read_ptau(data)
    assert len(powers.tau_g1) == 2 ** (powers.power + 1) - 1
    for k, level in enumerate(powers.levels):
        assert level.tau_g1.words.shape[0] == 2**k


USES: dict[str, Callable[[bytes], None]] = {
    "r1cs": use_r1cs,
    "wtns": use_wtns,
    "zkey": use_zkey,
    "ptau": use_ptau,
}


def use_points(data: bytes) -> None:
    check_zkey_points(read_zkey(data, insecure_key=True))


MOST_MEMORY = (
    1 << 20
)  # for files of at most 7 KB: one list of 4 GiB, or of 2^20 entries, would show


def survives(kind: str, data: bytes, use: Callable[[bytes], None] | None = None) -> None:
    message = ""
    tracemalloc.start()
    try:
        (use or USES[kind])(data)
    except CuzkError as error:
        message = str(error)
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert "\n" not in message
    assert peak < MOST_MEMORY + 8 * len(data)


NUMBERS = [0, 1, 2, 3, 4, 7, 8, 12, 31, 32, 33, 64, 255, 2**16, 2**20, 2**28, 2**31 - 1, 2**31, 2**32 - 1]  # fmt: skip
LONG_NUMBERS = [*NUMBERS, 2**32, 2**33 + 8, 2**53, 2**63 - 1, 2**63, 2**64 - 12, 2**64 - 1]


def overwrite(data: bytes, at: int, new: bytes) -> bytes:
    at %= max(len(data), 1)
    return data[:at] + new + data[at + len(new) :]


def sections_of(data: bytes) -> files.Sections | None:
    try:
        return files.take_apart(data)
    except (struct.error, OverflowError):
        return None


def damage_sections(data: bytes, draw: Any, kind: str) -> bytes:
    sections = sections_of(data)
    if not sections:
        return data
    i, j = (draw(st.integers(0, len(sections) - 1)) for _ in range(2))
    number, content = sections[i]
    match draw(st.sampled_from(["swap", "copy", "drop", "cut", "grow", "renumber", "exchange"])):
        case "swap":
            sections[i], sections[j] = sections[j], sections[i]
        case "copy":
            sections.insert(j, sections[i])
        case "drop":
            del sections[i]
        case "cut":
            sections[i] = (number, content[: draw(st.integers(0, len(content)))])
        case "grow":
            sections[i] = (number, content + bytes(draw(st.integers(1, 70))))
        case "renumber":
            sections[i] = (draw(st.integers(0, 17)), content)
        case _:
            sections[i], sections[j] = (number, sections[j][1]), (sections[j][0], content)
    return files.assemble(kind, sections, struct.unpack_from("<I", data, 4)[0])


@st.composite
def damaged(draw: st.DrawFn, kind: str) -> bytes:
    curve = CURVES[draw(st.sampled_from(list(files.LIBRARY)))]
    data = files.corpus_file(kind, curve).read_bytes()
    for _ in range(draw(st.integers(1, 3))):
        if len(data) < 12:
            break
        # half of the places near a section's edge: lengths and counts are there
        near = st.builds(lambda edge, step: max(edge + step, 0), st.sampled_from(files.edges(files.corpus_file(kind, curve).read_bytes())), st.integers(-4, 60))  # fmt: skip
        at = draw(st.one_of(near, st.integers(0, len(data) - 1)))
        match draw(st.sampled_from(["flip", "u32", "u64", "cut", "grow", "sections", "sections"])):
            case "flip":
                data = overwrite(data, at, bytes([draw(st.integers(0, 255))]))
            case "u32":
                data = overwrite(data, at, struct.pack("<I", draw(st.sampled_from(NUMBERS))))
            case "u64":
                data = overwrite(data, at, struct.pack("<Q", draw(st.sampled_from(LONG_NUMBERS))))
            case "cut":
                data = data[:at]
            case "grow":
                data = data[:at] + draw(st.binary(min_size=1, max_size=64)) + data[at:]
            case _:
                data = damage_sections(data, draw, kind)
    return data


QUICK = settings(
    max_examples=250, deadline=2000, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)


@pytest.mark.parametrize("kind", files.KINDS)
def test_damaged_files_never_do_worse_than_an_error(kind: str) -> None:
    @QUICK
    @given(damaged(kind))
    def check(data: bytes) -> None:
        survives(kind, data)

    check()


@settings(QUICK, max_examples=60)
@given(
    st.sampled_from(list(files.LIBRARY)), st.integers(0, 10_000), st.binary(min_size=1, max_size=64)
)
def test_damaged_points_are_checked_in_full(name: str, at: int, new: bytes) -> None:
    data = files.corpus_file("zkey", CURVES[name]).read_bytes()
    survives("zkey", overwrite(data, at, new)[: len(data)], use_points)


@pytest.mark.slow
@pytest.mark.parametrize("kind", files.KINDS)
def test_damaged_files_for_longer(kind: str) -> None:
    @settings(QUICK, max_examples=20_000, derandomize=False)
    @given(damaged(kind))
    def check(data: bytes) -> None:
        survives(kind, data)

    check()


@pytest.mark.parametrize("kind", files.KINDS)
def test_bytes_of_any_kind(kind: str) -> None:
    @QUICK
    @given(st.binary(max_size=200), st.booleans())
    def check(data: bytes, framed: bool) -> None:
        survives(kind, kind.encode() + struct.pack("<I", 1) + data if framed else data)

    check()


COUNTED = {"r1cs": (1, 2), "wtns": (1,), "zkey": (2, 4), "ptau": (1, 7)}


@pytest.mark.parametrize("kind", files.KINDS)
def test_every_number_of_the_table_and_of_counting_sections(kind: str) -> None:
    """Each 4 bytes of them replaced by hostile numbers, alone and with the 4 bytes that follow."""
    data = files.corpus_file(kind, CURVES["bn254"]).read_bytes()
    places = {edge - back for edge in files.edges(data) for back in (4, 8, 12) if edge >= back}
    at = 12
    for number, content in files.take_apart(data):
        if number in COUNTED[kind]:
            places |= set(range(at + 12, at + 12 + min(len(content), 144), 4))
        at += 12 + len(content)
    for place in sorted(places):
        for value in (0, 1, 2**32 - 1):
            survives(kind, overwrite(data, place, struct.pack("<I", value)))
        survives(kind, overwrite(data, place, struct.pack("<II", 2**32 - 1, 2**31)))


def test_the_whole_corpus_in_every_reader() -> None:
    """Regressions are kept in the corpus under any name; each reader gets each file, its own kind or not."""
    corpus = [path for path in files.CORPUS.rglob("*") if path.is_file()]
    assert len(corpus) >= len(files.KINDS) * len(files.LIBRARY)
    for path in corpus:
        for kind in files.KINDS:
            survives(kind, path.read_bytes())


def test_the_seeds_are_valid() -> None:
    for kind in files.KINDS:
        for name in files.LIBRARY:
            USES[kind](files.corpus_file(kind, CURVES[name]).read_bytes())
