"""Proof bytes: 14 real proofs with keys, the 561 of the regression records, and wrong lengths."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cuzk.errors import FormatError
from cuzk.filecoin.proof_bytes import read_proofs, write_proofs
from cuzk.filecoin.registered import POST, SEAL, UPDATE, Challenges, RegisteredProof
from cuzk.formats.points import decode_compressed

RECORDS = {  # as FILECOIN's table of real data counts them
    "v16": {"2KiB": 124, "8MiB": 88, "512MiB": 230, "32GiB": 4, "64GiB": 2},
    "v18": {"8MiB": 60, "512MiB": 50, "32GiB": 3},
}
FEATURES = {
    "": Challenges.INTERACTIVE,
    "SyntheticPoRep": Challenges.SYNTHETIC,
    "NonInteractivePoRep": Challenges.NON_INTERACTIVE,
}
AGGREGATED = {13: 14_164, 126: 23_092}


@pytest.fixture(scope="module")
def seal_proofs(fixtures: Path) -> bytes:
    """Ten proofs of 192 bytes, each with its 327 inputs behind it, after two counts and the key."""
    data = (fixtures / "filecoin" / "seal32_x10.prf").read_bytes()
    start, step = 16 + 868 + 96 * 328, 192 + 32 * 327
    assert len(data) == start + 10 * step
    return b"".join(data[start + k * step : start + k * step + 192] for k in range(10))


def records(fixtures: Path, version: str) -> list[tuple[RegisteredProof, bytes]]:
    """Each regression record's proof, with the type of that size and those challenges."""
    path = fixtures / "filecoin" / f"seal_regression_records-{version}.json"
    found = []
    for line in path.read_text().splitlines():
        record: dict[str, Any] = json.loads(line)
        config = record["porep_config"]
        challenges = FEATURES["".join(config["api_features"])]
        (proof, *_) = (
            p
            for p in SEAL
            if p.shape.sector_bytes == config["sector_size"] and p.challenges is challenges
        )
        assert proof.partitions == config["partitions"]
        found.append((proof, bytes(record["proof"])))
    return found


def test_the_ten_partitions_of_a_32_gib_seal(seal_proofs: bytes) -> None:
    proofs = read_proofs(seal_proofs, SEAL[3])
    assert len(proofs) == 10
    assert write_proofs(proofs, SEAL[3]) == seal_proofs
    assert write_proofs(proofs[::-1], SEAL[3]) != seal_proofs


def test_single_proofs(fixtures: Path) -> None:
    folder = fixtures / "filecoin"
    window = (folder / "window.prf").read_bytes()
    start = 16 + 868 + 96 * 25_840
    cases = [
        (POST[8], window[start : start + 192]),
        (POST[3], (folder / "winning32.prf").read_bytes()[:192]),
        (SEAL[0], bytes.fromhex(json.loads((folder / "porep-2KiB.json").read_text())["proof"])),
        (POST[5], bytes.fromhex(json.loads((folder / "window-post-2KiB.json").read_text())["proof"])),
    ]  # fmt: skip
    for proof, data in cases:
        assert write_proofs(read_proofs(data, proof), proof) == data


@pytest.mark.parametrize("version", RECORDS)
def test_regression_records_parse(fixtures: Path, version: str) -> None:
    """All points on the curve and in the subgroup; those of one sector size are decoded in one go."""
    counts: Counter[str] = Counter()
    bare = []
    for proof, data in records(fixtures, version):
        counts[proof.shape.name] += 1
        if proof.challenges is Challenges.NON_INTERACTIVE:
            assert len(data) == AGGREGATED[proof.partitions]
            with pytest.raises(FormatError, match="an aggregated proof"):
                read_proofs(data, proof)
            continue
        bare.append(data)
        if len(bare) == 1 or proof.partitions > 1:
            assert write_proofs(read_proofs(data, proof), proof) == data
    assert counts == RECORDS[version]
    rows = np.frombuffer(b"".join(bare), dtype=np.uint8).reshape(-1, 192)
    for group, first, last in (("g1", 0, 48), ("g2", 48, 144), ("g1", 144, 192)):
        points = decode_compressed(rows[:, first:last].tobytes(), group, version, threads=2)
        assert len(points) == len(rows)
        assert not points.is_infinity().any()


@pytest.mark.parametrize("size", [0, 191, 193, 1919, 1921, 3840])
def test_l10_wrong_lengths(seal_proofs: bytes, size: int) -> None:
    data = (seal_proofs * 2)[:size]
    for proof in (SEAL[0], SEAL[8], POST[3], UPDATE[1]):
        expected = proof.partitions * 192
        with pytest.raises(FormatError, match=rf"expected {expected} bytes .*found {size}$"):
            read_proofs(data, proof)


def test_l10_ten_partitions_for_one(seal_proofs: bytes) -> None:
    with pytest.raises(
        FormatError, match=r"expected 192 bytes \(1 partitions of 192\) of .*found 1920$"
    ):
        read_proofs(seal_proofs, SEAL[5])
    with pytest.raises(
        FormatError, match=r"expected 1920 bytes \(10 partitions of 192\).* found 192$"
    ):
        read_proofs(seal_proofs[:192], SEAL[8])


def test_a_bad_point_is_placed(seal_proofs: bytes) -> None:
    data = bytearray(seal_proofs)
    data[6 * 192 + 48] = 0xFF
    with pytest.raises(FormatError, match="partition 6: b: g2 point 0"):
        read_proofs(bytes(data), SEAL[3], "seal.proof")


def test_wrong_counts_are_not_written(seal_proofs: bytes) -> None:
    proofs = read_proofs(seal_proofs, SEAL[3])
    for wrong in (proofs[:9], [*proofs, proofs[0]], []):
        with pytest.raises(FormatError, match=f"expected 10 partitions of .*, found {len(wrong)}"):
            write_proofs(wrong, SEAL[8])
