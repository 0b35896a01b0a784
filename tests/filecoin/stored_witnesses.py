"""Real vanilla proofs, and what the reference's witnesses of them are."""

import json
from pathlib import Path
from typing import Any

from c1_files import c1_8mib

from cuzk.filecoin.c1 import C1, read_c1
from cuzk.filecoin.registered import registered
from cuzk.filecoin.vanilla import PostSectors, read_post


def stored_witnesses(fixtures: Path) -> dict[str, Any]:
    """Digests by the name of the circuit."""
    entries = json.loads((fixtures / "filecoin" / "witness_digest.json").read_text())["witnesses"]
    return {entry["name"]: entry for entry in entries}


def real_c1(fixtures: Path, size: str) -> C1:
    """Of 2KiB or 8MiB."""
    if size == "2KiB":
        return read_c1(fixtures / "filecoin" / "c1-2KiB.bincode")
    return read_c1(c1_8mib(fixtures)[0])


def real_sector(fixtures: Path) -> PostSectors:
    """Ten challenges of a sector of 32 GiB."""
    proof = registered("post", "StackedDrgWindow32GiBV1_2")
    return read_post([fixtures / "filecoin" / "post.vproof"], proof)
