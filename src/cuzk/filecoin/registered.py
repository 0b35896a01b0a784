"""Registered proof types: what a number or a name of Filecoin's says about a proof.

A family of proofs has a version for every five numbers, and in each version one number for every published
sector size (2 KiB, 8 MiB, 512 MiB, 32 GiB, 64 GiB):

    seal      0 V1   5 V1_1   10 V1_1 synthetic   15 V1_2 non-interactive
    post      0 winning V1    5 window V1         10 window V1_2 (Go: V1_1)
    update    0 V1

The API version says how parents and challenges are derived; the circuit is the same in all versions of a
size. Numbers are those of Rust's and of Go's enumerations alike; names differ in two versions.

Definitions: rust-filecoin-proofs-api registry, go-state-types abi.RegisteredSealProof, RegisteredPoStProof,
RegisteredUpdateProof.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from cuzk.errors import FormatError
from cuzk.filecoin.shapes import PUBLISHED, SHAPES, Shape


class Kind(Enum):
    """Which circuit; the value begins the name of a circuit, "porep-32GiB"."""

    POREP = "porep"
    WINNING = "winning"
    WINDOW = "window"
    UPDATE = "update"


class ApiVersion(Enum):
    """1.0, 1.1, 1.2: how parents and challenges are derived."""

    V1_0 = "1.0"
    V1_1 = "1.1"
    V1_2 = "1.2"


class Challenges(Enum):
    """Where the challenges of a PoRep come from."""

    INTERACTIVE = "interactive"
    SYNTHETIC = "synthetic"
    NON_INTERACTIVE = "non-interactive"


@dataclass(frozen=True)
class RegisteredProof:
    """One registered proof type. ``name`` as serde writes it, ``go_name`` as go-state-types calls it."""

    family: str
    number: int
    name: str
    go_name: str
    kind: Kind
    shape: Shape
    api: ApiVersion
    challenges: Challenges = Challenges.INTERACTIVE

    @property
    def partitions(self) -> int:
        """Circuits, and so proofs of 192 bytes, that make up one whole proof (PoSt: of one partition)."""
        if self.kind is Kind.UPDATE:
            return self.shape.update_partitions
        if self.kind is not Kind.POREP:
            return 1
        if self.challenges is Challenges.NON_INTERACTIVE:
            return self.shape.ni_partitions
        return self.shape.partitions

    @property
    def circuit(self) -> str:
        """The name of its circuit, which several types share: "porep-32GiB"."""
        return f"{self.kind.value}-{self.shape.name}"

    def porep_id(self, nonce: int = 0) -> bytes:
        """32 bytes: number and nonce as u64, little-endian, then zeros. Only seal proofs have one."""
        if self.kind is not Kind.POREP:
            raise FormatError(f"PoRep id: expected a seal proof, found {self.name}")
        return self.number.to_bytes(8, "little") + nonce.to_bytes(8, "little") + bytes(16)


@dataclass(frozen=True)
class _Version:
    rust: str
    go: str
    kind: Kind
    api: ApiVersion
    challenges: Challenges = Challenges.INTERACTIVE


_SYNTHETIC = "StackedDrg{}V1_1_Feat_SyntheticPoRep"
_NON_INTERACTIVE = "StackedDrg{}V1_2_Feat_NonInteractivePoRep"
_NI_GO = "StackedDrg{}V1_2_Feat_NiPoRep"

_VERSIONS = {
    "seal": (
        _Version("StackedDrg{}V1", "StackedDrg{}V1", Kind.POREP, ApiVersion.V1_0),
        _Version("StackedDrg{}V1_1", "StackedDrg{}V1_1", Kind.POREP, ApiVersion.V1_1),
        _Version(_SYNTHETIC, _SYNTHETIC, Kind.POREP, ApiVersion.V1_2, Challenges.SYNTHETIC),
        _Version(_NON_INTERACTIVE, _NI_GO, Kind.POREP, ApiVersion.V1_2, Challenges.NON_INTERACTIVE),
    ),
    "post": (
        _Version("StackedDrgWinning{}V1", "StackedDrgWinning{}V1", Kind.WINNING, ApiVersion.V1_0),
        _Version("StackedDrgWindow{}V1", "StackedDrgWindow{}V1", Kind.WINDOW, ApiVersion.V1_0),
        _Version("StackedDrgWindow{}V1_2", "StackedDrgWindow{}V1_1", Kind.WINDOW, ApiVersion.V1_2),
    ),
    "update": (_Version("StackedDrg{}V1", "StackedDrg{}V1", Kind.UPDATE, ApiVersion.V1_2),),
}


def _family(family: str) -> tuple[RegisteredProof, ...]:
    return tuple(
        RegisteredProof(
            family=family,
            number=number,
            name=version.rust.format(size),
            go_name=version.go.format(size),
            kind=version.kind,
            shape=SHAPES[size],
            api=version.api,
            challenges=version.challenges,
        )
        for number, (version, size) in enumerate(
            (version, size) for version in _VERSIONS[family] for size in PUBLISHED
        )
    )


SEAL = _family("seal")
POST = _family("post")
UPDATE = _family("update")

_FAMILIES = {"seal": SEAL, "post": POST, "update": UPDATE}


def registered(family: str, what: int | str, where: str = "registered proof") -> RegisteredProof:
    """The type of a family ("seal", "post", "update") with this number, or this name in Rust or in Go."""
    proofs = _FAMILIES[family]
    for proof in proofs:
        if what in (proof.number, proof.name, proof.go_name):
            return proof
    raise FormatError(
        f"{where}: expected a {family} proof, 0 to {len(proofs) - 1} or "
        f"a name like {proofs[3].name}, found {what!r}"
    )
