"""Where ``cuzk filecoin`` finds keys, circuits and digests, and which keys it trusts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from cuzk.cli.app import environment
from cuzk.cli.options import FILE
from cuzk.errors import FormatError
from cuzk.filecoin import digests
from cuzk.filecoin.digests import DigestCache
from cuzk.filecoin.parameters import DEFAULT_FOLDER, DIGESTS, Parameters
from cuzk.filecoin.registered import RegisteredProof
from cuzk.filecoin.templates import store
from cuzk.filecoin.templates.catalogue import Circuit, circuit_of
from cuzk.filecoin.templates.circuit import CircuitShape
from cuzk.formats.bellman import key_digest, read_layout
from cuzk.formats.source import Source
from cuzk.load import expect_digest

params_option = click.option(
    "--params",
    type=FILE,
    metavar="DIR",
    help="Where the parameter files are; FIL_PROOFS_PARAMETER_CACHE, or Filecoin's own place, if not given.",
)


@dataclass(frozen=True)
class KeyFile:
    """``published``: its digest is Filecoin's; ``checked``: it has that digest, or the one that was asked for."""

    path: Path
    published: bool
    checked: bool


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
    """Whether a located key may be used. A proving key is hashed whole, once for as long as its file stays the same.

    One found by its name must have the published digest, unless an insecure key is meant; one that was ``named`` as a
    file need not: it is the caller's, who may say its ``digest``.
    """
    files = Parameters(proof.kind, proof.shape)
    if not (named or digest or insecure):
        files.check(path, suffix, _known_digests())
        return KeyFile(path, published=True, checked=True)
    if digest is not None:
        expect_digest(Source.open(path, "a parameter file"), digest)
    found, known = _digest_of(path, suffix), DIGESTS.get(files.circuit)
    published = known is not None and found == known[suffix == "vk"]
    return KeyFile(path, published, published or digest is not None)


def _digest_of(path: Path, suffix: str) -> str:
    """Filecoin's digest; of a verifying key the part of a .params file that is the .vk; "" for one of another form."""
    if suffix == "params":
        return _known_digests().digest(path)
    source = Source.open(path, "a verifying key")
    try:
        layout = read_layout(source)
    except FormatError:
        return ""
    return key_digest(source.data[: layout.ic.end])


def _known_digests() -> DigestCache:
    return DigestCache(digests.default_folder())
