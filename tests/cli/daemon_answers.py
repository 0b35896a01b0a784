"""What a daemon answers: proofs that are valid, a job of its status, owners of its memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cuzk as library
from cuzk.curves import BN254
from cuzk.server.client import Client, ProofResult


def expect_valid(key: Path, result: ProofResult) -> None:
    vk = library.load_verifying_key(key)
    signals = library.load_public(result.public, BN254)
    assert library.verify(vk, signals, library.load_proof(result.proof, BN254))


def job_of(client: Client, name: str) -> dict[str, Any]:
    return next(job for job in client.status()["jobs"] if job["id"] == name)


def owners(client: Client) -> list[str]:
    """Of memory: keys and what processes take apart."""
    found = [owner for owner in owners_and_keys(client) if not owner.startswith("key ")]
    processes = {"process of the daemon", "process on cpu"}
    assert processes <= {*found}
    return [owner for owner in found if owner not in processes]


def owners_and_keys(client: Client) -> list[str]:
    return [owner for memory in client.status()["memories"] for owner in memory["owners"]]
