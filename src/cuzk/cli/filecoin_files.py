"""Where ``cuzk filecoin`` finds keys, circuits and digests, and which keys it trusts."""

from __future__ import annotations

from pathlib import Path

import click

from cuzk.cli.app import environment
from cuzk.cli.options import FILE
from cuzk.errors import FormatError
from cuzk.filecoin import digests, trust
from cuzk.filecoin.digests import DigestCache
from cuzk.filecoin.parameters import DEFAULT_FOLDER, Parameters
from cuzk.filecoin.registered import RegisteredProof
from cuzk.filecoin.templates import store
from cuzk.filecoin.templates.catalogue import Circuit, circuit_of
from cuzk.filecoin.templates.circuit import CircuitShape
from cuzk.filecoin.trust import KeyFile

params_option = click.option(
    "--params",
    type=FILE,
    metavar="DIR",
    help="Where the parameter files are; FIL_PROOFS_PARAMETER_CACHE, or Filecoin's own place, if not given.",
)


def parameter_folder(params: Path | None) -> Path:
    """What was asked for, what the environment says, or Filecoin's own place."""
    return params or environment().parameters or Path(DEFAULT_FOLDER)


def circuit(of: Circuit) -> CircuitShape:
    """From ~/.cache/cuzk/circuits, where it is kept."""
    return circuit_of(of, store.default_folder())


def locate_key(proof: RegisteredProof, suffix: str, params: Path | None, key: Path | None) -> Path:
    """The key of a proof type: the file that was named, or the one of its name in a directory."""
    if params is not None and key is not None:
        raise FormatError("--params, --key: expected one of them, found both")
    return key or Parameters(proof.kind, proof.shape).find(parameter_folder(params), suffix)


def trust_key(
    proof: RegisteredProof,
    path: Path,
    suffix: str,
    *,
    named: bool,
    digest: str | None,
    insecure: bool,
) -> KeyFile:
    """:func:`cuzk.filecoin.trust.trust_key` with the digests that are remembered for this user."""
    files, cache = Parameters(proof.kind, proof.shape), DigestCache(digests.default_folder())
    return trust.trust_key(
        files, path, suffix, cache, named=named, digest=digest, insecure=insecure
    )
