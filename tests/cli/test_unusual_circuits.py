"""Files of unusual shape, from circuit to proof by the commands; the proof is judged by py_ecc."""

import json
import random
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from files import sections, wtns_bytes

import cuzk.cli.app as app
from cuzk.curves import Curve
from cuzk.load import load_proof, load_public, load_verifying_key
from independent import accepts

Prove = Callable[..., list[int]]


def framed(kind: bytes, parts: list[tuple[int, bytes]]) -> bytes:
    """A file of version 1."""
    table = b"".join(struct.pack("<IQ", n, len(content)) + content for n, content in parts)
    return kind + struct.pack("<II", 1, len(parts)) + table


def r1cs_bytes(curve: Curve, wires: int, outputs: int, rows: list[list[tuple[int, int]]]) -> bytes:
    """An .r1cs; ``rows``: A, B, C of each constraint one after the other, as (wire, coefficient)."""
    body = b""
    for row in rows:
        body += struct.pack("<I", len(row))
        for wire, coefficient in row:
            body += struct.pack("<I", wire) + (coefficient % curve.r).to_bytes(32, "little")
    counts = (wires, outputs, 0, wires - outputs - 1, wires, len(rows) // 3)
    header = (
        struct.pack("<I", 32) + curve.r.to_bytes(32, "little") + struct.pack("<IIIIQI", *counts)
    )
    return framed(b"r1cs", [(2, body), (1, header), (3, bytes(8 * wires))])


@pytest.fixture
def proved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, curve: Curve) -> Prove:
    """Setup, proof, export and verification of a circuit and its witness: the public signals."""
    monkeypatch.chdir(tmp_path)

    def run(
        circuit: bytes, witness: list[int], change: Callable[[bytes], bytes] | None = None
    ) -> list[int]:
        Path("c.r1cs").write_bytes(circuit)
        Path("c.wtns").write_bytes(wtns_bytes(curve.name, witness))
        assert app.run(["ptau", "new", curve.snarkjs_name, "3", "-o", "c.ptau"]) == 0
        assert app.run(["setup", "c.r1cs", "c.ptau", "-o", "c.zkey"]) == 0
        if change is not None:
            Path("c.zkey").write_bytes(change(Path("c.zkey").read_bytes()))
        assert app.run(["prove", "c.zkey", "c.wtns"]) == 0
        assert app.run(["export", "vk", "c.zkey"]) == 0
        assert app.run(["verify", "verification_key.json", "public.json", "proof.json"]) == 0
        vk = load_verifying_key("verification_key.json")
        public = load_public("public.json", curve)
        assert accepts(vk, public, load_proof("proof.json", curve))
        assert json.loads(Path("public.json").read_text()) == [str(value) for value in public]
        return public

    return run


def test_c1_no_public_signal(curve: Curve, proved: Prove) -> None:
    """x (x - 5) = 6"""
    circuit = r1cs_bytes(curve, 2, 0, [[(1, 1)], [(1, 1), (0, -5)], [(0, 6)]])
    assert proved(circuit, [1, 6]) == []


def test_c2_every_wire_is_public(curve: Curve, proved: Prove) -> None:
    """out = a b: section 8 is empty."""
    circuit = r1cs_bytes(curve, 4, 3, [[(2, 1)], [(3, 1)], [(1, 1)]])
    assert proved(circuit, [1, 42, 6, 7]) == [42, 6, 7]


def test_f15_a_wire_twice_and_wires_unsorted(curve: Curve, proved: Prove) -> None:
    """out = (x + 3 x - 2 x + 1) (y + x + y), written with every combination out of order."""
    rows = [
        [(3, 1), (2, 1), (0, 1), (2, 3), (2, -2), (3, -1)],
        [(3, 1), (2, 1), (3, 1)],
        [(1, -1), (1, 2)],
    ]
    assert proved(r1cs_bytes(curve, 4, 1, rows), [1, 77, 3, 4]) == [77]


@pytest.mark.parametrize("order", [[1, 2, 4, 3, 9, 8, 5, 6, 7, 10], None])
def test_f1_sections_of_the_key_in_any_order(
    order: list[int] | None, curve: Curve, proved: Prove
) -> None:
    """The order of older keys, and a random one."""
    numbers = order or random.Random(5).sample(range(1, 11), 10)

    def permuted(data: bytes) -> bytes:
        table = sections(data)
        return framed(
            b"zkey", [(n, data[at : at + size]) for n in numbers for at, size in [table[n]]]
        )

    circuit = r1cs_bytes(curve, 4, 1, [[(2, 1)], [(3, 1)], [(1, 1)]])
    assert proved(circuit, [1, 42, 6, 7], permuted) == [42]


def test_f2_a_key_without_its_ceremony_record(curve: Curve, proved: Prove) -> None:
    def bare(data: bytes) -> bytes:
        table = {n: data[at : at + size] for n, (at, size) in sections(data).items() if n != 10}
        return framed(b"zkey", list(table.items()))

    circuit = r1cs_bytes(curve, 4, 1, [[(2, 1)], [(3, 1)], [(1, 1)]])
    assert proved(circuit, [1, 42, 6, 7], bare) == [42]
