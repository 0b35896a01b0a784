"""Own keys as files, made once per process; statements of real proofs, and their keys, as files."""

from __future__ import annotations

import atexit
import json
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from cuzk.filecoin.own_keys import own_key, write_key
from cuzk.filecoin.parameters import Parameters, parameters_named
from cuzk.filecoin.templates.catalogue import circuit_of
from cuzk.filecoin.templates.circuit import CircuitShape
from cuzk.formats.bellman import vk_bytes
from cuzk.formats.points import decode_compressed
from proof_files import Bytes, compressed_key

HEAD = ("g1", "g1", "g2", "g2", "g1", "g2")


@cache
def circuit(name: str) -> CircuitShape:
    return circuit_of(parameters_named(name))


@cache
def own_files(name: str) -> Path:
    """A directory with the key of a circuit."""
    folder = Path(tempfile.mkdtemp(prefix="cuzk-filecoin-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    write_key(own_key(circuit(name), threads=2), parameters_named(name), folder)
    return folder


def params_file(name: str) -> Path:
    found: Parameters = parameters_named(name)
    return own_files(name) / f"{found.stem}.params"


# Real proofs


@dataclass(frozen=True)
class Prf:
    """A .prf file without a look at its key: counts, the key, then each proof with its inputs."""

    vk: bytes
    proofs: list[bytes]
    publics: list[list[int]]


def read_prf(data: bytes) -> Prf:
    reader = Bytes(data)
    count, inputs = reader.big(8), reader.big(8)
    vk = reader.take(868 + 96 * (inputs + 1))
    proofs, publics = [], []
    for _ in range(count):
        proofs.append(reader.take(192))
        publics.append([reader.big(32) for _ in range(inputs)])
    return Prf(vk, proofs, publics)


def read_winning_prf(data: bytes) -> Prf:
    """One proof, count of inputs, inputs; the key at the end."""
    reader = Bytes(data)
    proof = reader.take(192)
    public = [reader.big(32) for _ in range(reader.big(8))]
    return Prf(data[reader.offset :], [proof], [public])


def write_compressed_vk(data: bytes, path: Path) -> Path:
    """A .vk of the fields of the 2 KiB files, whose points are compressed."""
    points, at = [], 0
    for group in HEAD:
        size = 48 if group == "g1" else 96
        points.append(decode_compressed(data[at : at + size], group, "vk"))
        at += size
    path.write_bytes(vk_bytes(compressed_key(data), points[1], points[4]))
    return path


def hexadecimal(value: int) -> str:
    return value.to_bytes(32, "little").hex()


def seal_statement(publics: list[list[int]]) -> dict[str, Any]:
    """The ten partitions of 32 GiB: of their seed only the challenges are known."""
    replica_id, comm_d, comm_r = (hexadecimal(value) for value in publics[0][:3])
    return {
        "registered_seal_proof": "StackedDrg32GiBV1",
        "replica_id": replica_id,
        "comm_d": comm_d,
        "comm_r": comm_r,
        "challenges": [public[3::18] for public in publics],
    }


def post_statement(kind: str, public: list[int], each: int) -> dict[str, Any]:
    """The sectors of a 32 GiB PoSt: of its randomness only the challenges are known."""
    rows = np.array(public, dtype=object).reshape(-1, 1 + each).tolist()
    if each == 1:
        rows = [[rows[0][0], *(row[1] for row in rows)]]
    sectors = [{"comm_r": hexadecimal(row[0]), "challenges": row[1:]} for row in rows]
    while len(sectors) > 1 and sectors[-1] == sectors[-2]:
        sectors.pop()
    return {"registered_post_proof": kind, "sectors": sectors}


def records(fixtures: Path, version: int) -> Iterator[dict[str, Any]]:
    """Of rust-fil-proofs' regression files."""
    path = fixtures / "filecoin" / f"seal_regression_records-v{version}.json"
    for line in path.read_text().splitlines():
        yield json.loads(line)
