"""Keys of a circuit from secrets known here: for tests, devnets and benchmarks.

The files have the form and the names of Filecoin's (:mod:`cuzk.filecoin.parameters`); nobody else's software takes
them, for their digests are not the published ones. delta = gamma = 1, so that every reader sees that anyone can
forge their proofs, and refuses them unless an insecure key is meant.

A point takes a core 6.1 us in G1 and 18 us in G2 (docs/kernels.md), so 2 KiB WindowPoSt 0.9 s and 2 KiB PoRep 75 s.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

from cuzk.curves import BLS12_381
from cuzk.errors import CuzkError, FormatError
from cuzk.filecoin.key_sizes import expect_memory, params_bytes, setup_bytes
from cuzk.filecoin.key_sizes import vk_bytes as vk_size
from cuzk.filecoin.parameters import Parameters
from cuzk.filecoin.templates.circuit import CircuitShape
from cuzk.filecoin.witness.system import constraint_system
from cuzk.formats.bellman import params_chunks, vk_bytes
from cuzk.formats.source import printable, write_together
from cuzk.groth16 import BELLMAN, ProvingKey
from cuzk.setup import Secrets, insecure_setup

SUFFIXES = ("params", "vk")


def insecure_secrets() -> Secrets:
    """tau, alpha and beta from the operating system; delta = gamma = 1, which marks the key."""
    return replace(Secrets.drawn(BLS12_381), delta=1, gamma=1)


def own_key(
    circuit: CircuitShape, secrets: Secrets | None = None, *, threads: int = 1
) -> ProvingKey:
    """The key of a circuit. OutOfMemory, before any work, where this machine cannot hold it.

    ``secrets`` of the caller's with another delta make a key that no reader can tell from one of a ceremony.
    """
    expect_memory(setup_bytes(circuit), circuit, "making a key")
    return insecure_setup(
        constraint_system(circuit), secrets or insecure_secrets(), BELLMAN, threads=threads
    )


def key_files(parameters: Parameters, folder: Path) -> dict[str, Path]:
    """The files of a key, by suffix; FormatError where one is there already: it might be a published one."""
    files = {suffix: folder / f"{parameters.stem}.{suffix}" for suffix in SUFFIXES}
    for path in files.values():
        if path.exists():
            raise FormatError(
                f"{printable(str(path))}: expected no file of that name yet, found one: take another "
                "directory, or remove it first"
            )
    return files


def expect_room(circuit: CircuitShape, folder: Path) -> None:
    """CuzkError, before the work, where the disk cannot take the files."""
    needed, free = params_bytes(circuit) + vk_size(circuit), shutil.disk_usage(folder).free
    if needed > free:
        raise CuzkError(
            f"{printable(str(folder))}: expected room for {needed} bytes of {circuit.name}'s key, found {free}"
        )


def write_key(key: ProvingKey, parameters: Parameters, folder: Path) -> dict[str, Path]:
    """The .params and .vk files, by suffix, both or neither."""
    files = key_files(parameters, folder)
    head = vk_bytes(key.vk, key.beta_g1, key.delta_g1)
    write_together({files["params"]: params_chunks(key), files["vk"]: [head]})
    return files
