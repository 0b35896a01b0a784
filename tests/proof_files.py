"""Real proofs with their keys, as other projects store them: .prf files, and hex with compressed points."""

from __future__ import annotations

from dataclasses import dataclass

from cuzk.curves import BLS12_381
from cuzk.formats import bellman
from cuzk.formats.points import decode_compressed
from cuzk.groth16 import Proof, VerifyingKey

Case = tuple[list[int], Proof]
EQUATION = "the pairing equation does not hold"


class Bytes:
    """A cursor over little- or big-endian records."""

    def __init__(self, data: bytes) -> None:
        self.data, self.offset = data, 0

    def take(self, size: int) -> bytes:
        piece = self.data[self.offset : self.offset + size]
        if len(piece) != size:
            raise EOFError(f"wanted {size} bytes at {self.offset}")
        self.offset += size
        return piece

    def compact(self) -> int:
        """Bitcoin's variable-length integer."""
        first = self.take(1)[0]
        size = {253: 2, 254: 4, 255: 8}.get(first, 0)
        return int.from_bytes(self.take(size), "little") if size else first

    def big(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")


@dataclass(frozen=True)
class ProofFile:
    vk: VerifyingKey
    proofs: list[bytes]
    publics: list[list[int]]

    def statements(self) -> list[Case]:
        proofs = bellman.read_partition_proofs(b"".join(self.proofs), len(self.proofs))
        return list(zip(self.publics, proofs, strict=True))


def prf_file(data: bytes) -> ProofFile:
    """Counts of proofs and inputs (u64 each), the key, then each proof with its inputs; big-endian."""
    reader = Bytes(data)
    count, inputs = reader.big(8), reader.big(8)
    vk = bellman.read_vk(reader.take(868 + 96 * (inputs + 1)), threads=2)
    proofs, publics = [], []
    for _ in range(count):
        proofs.append(reader.take(192))
        publics.append([reader.big(32) for _ in range(inputs)])
    assert reader.offset == len(data)
    return ProofFile(vk, proofs, publics)


def winning_prf_file(data: bytes) -> ProofFile:
    """One proof, count of inputs, inputs; the key at the end."""
    reader = Bytes(data)
    proof = reader.take(192)
    public = [reader.big(32) for _ in range(reader.big(8))]
    return ProofFile(bellman.read_vk(reader.data[reader.offset :]), [proof], [public])


def compressed_key(data: bytes) -> VerifyingKey:
    """The fields of a .vk with compressed points, as the 2 KiB files hold them."""
    reader = Bytes(data)
    groups = ("g1", "g1", "g2", "g2", "g1", "g2")
    head = [decode_compressed(reader.take(48 if g == "g1" else 96), g, "vk") for g in groups]
    ic = decode_compressed(reader.take(48 * reader.big(4)), "g1", "ic")
    assert reader.offset == len(data)
    return VerifyingKey(BLS12_381, head[0], head[2], head[3], head[5], ic)
