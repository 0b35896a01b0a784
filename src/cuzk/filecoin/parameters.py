"""Filecoin's parameter files: what they are called, what their digests are, where they lie.

    v28-<circuit's family>-<SHA-256 of the circuit's identifier>.params, .vk, .meta

The identifier is a line of text that rust-fil-proofs prints of the circuit's public parameters, so sizes and
counts are in it, but neither PoRep id nor API version: all registered proofs of a size share one circuit.
A file is trusted by its digest, the first 32 hexadecimal digits of its BLAKE2b-512.

References: rust-fil-proofs storage-proofs-core::parameter_cache (names), the implementations of
CacheableParameters (identifiers), filecoin-proofs/parameters.json (digests).
"""

from __future__ import annotations

import stat
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from cuzk.errors import FormatError
from cuzk.filecoin.digests import DigestCache
from cuzk.filecoin.registered import POST, SEAL, UPDATE, Kind
from cuzk.filecoin.shapes import (
    DRG_DEGREE,
    EXPANDER_DEGREE,
    PUBLISHED,
    SHAPES,
    WINDOW_CHALLENGES,
    WINNING_CHALLENGES,
    Shape,
)
from cuzk.formats.source import printable

VERSION = "v28"
DEFAULT_FOLDER = "/var/tmp/filecoin-proof-parameters"
"""Where Filecoin's software looks when FIL_PROOFS_PARAMETER_CACHE does not say otherwise."""

DIGESTS = {  # circuit: .params, .vk
    "porep-2KiB": ("434fb1338ecfaf0f59256f30dde4968f", "dc1ade9929ade1708238f155343044ac"),
    "porep-8MiB": ("09e612e4eeb7a0eb95679a88404f960c", "b687beb9adbd9dabe265a7e3620813e4"),
    "porep-512MiB": ("6c77597eb91ab936c1cef4cf19eba1b3", "065179da19fbe515507267677f02823e"),
    "porep-32GiB": ("6a388072a518cf46ebd661f5cc46900a", "0c7b4aac1c40fdb7eb82bc355b41addf"),
    "porep-64GiB": ("1801f8a6e1b00bceb00cc27314bb5ce3", "a89884252c04c298d0b3c81bfd884164"),
    "winning-2KiB": ("82c88066be968bb550a05e30ff6c2413", "ffd79788d614d27919ae5bd2d94eacb6"),
    "winning-8MiB": ("700171ecf7334e3199437c930676af82", "79ebb55f56fda427743e35053edad8fc"),
    "winning-512MiB": ("827359440349fe8f5a016e7598993b79", "bd2cd62f65c1ab84f19ca27e97b7c731"),
    "winning-32GiB": ("d84f79a16fe40e9e25a36e2107bb1ba0", "fc02943678dd119e69e7fab8420e8819"),
    "winning-64GiB": ("2170a91ad5bae22ea61f2ea766630322", "6d3789148fb6466d07ee1e24d6292fd6"),
    "window-2KiB": ("7610b9f82bfc88405b7a832b651ce2f6", "0e0958009936b9d5e515ec97b8cb792d"),
    "window-8MiB": ("c49499bb76a0762884896f9683403f55", "34d4feeacd9abf788d69ef1bb4d8fd00"),
    "window-512MiB": ("1a7d4a9c8a502a497ed92a54366af33f", "4dae975de4f011f101f5a2f86d1daaba"),
    "window-32GiB": ("2cf49eb26f1fee94c85781a390ddb4c8", "0f8ec542485568fa3468c066e9fed82b"),
    "window-64GiB": ("3810b7780ac0e299b22ae70f1f94c9bc", "59d2bf1857adc59a4f08fcf2afaa916b"),
    "update-2KiB": ("311f92a3e75036ced01b1c0025f1fa0c", "eadad9784969890d30f2749708c79771"),
    "update-8MiB": ("5aedd2cf3e5c0a15623d56a1b43110ad", "abd80269054d391a734febdac0d2e687"),
    "update-512MiB": ("c3ad7bb549470b82ad52ed070aebb4f4", "994c5b7d450ca9da348c910689f2dc7f"),
    "update-32GiB": ("1b3cfd761a961543f9eb273e435a06a2", "3a6941983754737fde880d29c7094905"),
    "update-64GiB": ("1a392e7b759fb18e036c7559b5ece816", "80e366df2f1011953c2d01c7b7c9ee8e"),
}


@dataclass(frozen=True)
class Parameters:
    """The files of one circuit."""

    kind: Kind
    shape: Shape

    @property
    def circuit(self) -> str:
        """ "porep-32GiB" """
        return f"{self.kind.value}-{self.shape.name}"

    @property
    def identifier(self) -> str:
        """The text whose SHA-256 is in the names; every space counts."""
        shape = self.shape
        if self.kind is Kind.POREP:
            graph = (
                f"stacked_graph::StackedGraph{{expansion_degree: {EXPANDER_DEGREE} base_graph: "
                f"drgraph::BucketGraph{{size: {shape.nodes}; degree: {DRG_DEGREE}; "
                "hasher: poseidon_hasher} }"
            )
            challenges = (
                f"LayerChallenges {{ layers: {shape.layers}, max_count: {shape.challenges} }}"
            )
            return (
                f"layered_drgporep::PublicParams{{ graph: {graph}, "
                f"challenges: {challenges}, tree: {self._tree} }}"
            )
        if self.kind is Kind.UPDATE:
            return f"empty_sector_update::PublicParams{{ sector_nodes: {shape.nodes} }}"
        count, sectors = (
            (1, WINNING_CHALLENGES)
            if self.kind is Kind.WINNING
            else (WINDOW_CHALLENGES, shape.window_sectors)
        )
        return (
            f"FallbackPoSt::PublicParams{{sector_size: {shape.sector_bytes}, "
            f"challenge_count: {count}, sector_count: {sectors}}}"
        )

    @property
    def stem(self) -> str:
        """The names of the files without their ending."""
        family = {
            Kind.POREP: f"stacked-proof-of-replication-{self._tree}-sha256_hasher",
            Kind.WINNING: f"proof-of-spacetime-fallback-{self._tree}",
            Kind.WINDOW: f"proof-of-spacetime-fallback-{self._tree}",
            Kind.UPDATE: f"empty-sector-update-{self._tree}",
        }[self.kind]
        return f"{VERSION}-{family}-{sha256(self.identifier.encode()).hexdigest()}"

    @property
    def _tree(self) -> str:
        return f"merkletree-poseidon_hasher-{self.shape.tree}"

    def digest(self, suffix: str) -> str:
        """The published digest of the file with that ending, "params" or "vk"."""
        if self.circuit not in DIGESTS:
            raise FormatError(
                f"{self.circuit}: expected a circuit with published parameters "
                f"({', '.join(PUBLISHED)}), found none: use a key of your own"
            )
        return DIGESTS[self.circuit][("params", "vk").index(suffix)]

    def find(self, folder: Path, suffix: str) -> Path:
        """The file with that ending; one that is missing, empty or no file is named with the way to get it."""
        path = folder / f"{self.stem}.{suffix}"
        absence = _absence(path)
        if not absence:
            return path
        advice = "make a key of your own"
        if self.shape.name in PUBLISHED:
            advice = (
                f"fetch it with `lotus fetch-params {self.shape.name}` or "
                f"`curio fetch-params {self.shape.name}` (with FIL_PROOFS_PARAMETER_CACHE set to "
                f"the directory), or {advice}"
            )
        raise FormatError(
            f"{printable(str(path))}: expected the .{suffix} file of {self.circuit}, found {absence}: {advice}"
        )

    def check(self, path: Path, suffix: str, cache: DigestCache) -> None:
        """FormatError where the file's digest is not the published one."""
        expected, found = self.digest(suffix), cache.digest(path)
        if found != expected:
            raise FormatError(
                f"{printable(path.name)}: expected the digest {expected} of the published .{suffix} file "
                f"of {self.circuit}, found {found}: the file is damaged or another one; fetch it "
                "again, or, where it is a key of your own, say that an insecure key is meant (--insecure-key)"
            )


def parameters_named(text: str, where: str = "circuit") -> Parameters:
    """Those of "porep-32GiB", of a registered proof type's name, or of its family and number ("seal-8").

    A seal's and an update's types share names: those are the seal's.
    """
    kind, _, size = text.partition("-")
    if kind in {k.value for k in Kind} and size in SHAPES:
        return Parameters(Kind(kind), SHAPES[size])
    for proof in (*SEAL, *POST, *UPDATE):
        if text in (proof.name, proof.go_name, f"{proof.family}-{proof.number}"):
            return Parameters(proof.kind, proof.shape)
    kinds, sizes = ", ".join(k.value for k in Kind), ", ".join(SHAPES)
    raise FormatError(
        f"{where}: expected a circuit like porep-32GiB ({kinds}; {sizes}) or a registered proof type like "
        f"{SEAL[8].name} or seal-8, found {printable(text)[:80]!r}"
    )


def _absence(path: Path) -> str:
    """What is there instead of a file with content, or ""."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return "no such file" if path.parent.is_dir() else "no such directory"
    except NotADirectoryError:
        return "a file where its directory should be"
    except OSError as error:
        return error.strerror or str(error)
    if not stat.S_ISREG(status.st_mode):
        return "no file of that name, but something else"
    return "" if status.st_size else "an empty one"
