"""Which parameter files may be used: by Filecoin's published digest, or because their user says so."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from cuzk.errors import FormatError
from cuzk.filecoin.digests import DigestCache
from cuzk.filecoin.parameters import DIGESTS, Parameters
from cuzk.formats.bellman import key_digest, read_layout
from cuzk.formats.source import Source
from cuzk.load import expect_digest


@dataclass(frozen=True)
class KeyFile:
    """``published``: its digest is Filecoin's; ``checked``: it has that digest, or the one that was asked for."""

    path: Path
    published: bool
    checked: bool


def expect_trusted(
    files: Parameters, path: Path, suffix: str, cache: DigestCache, *, digest: str | None
) -> None:
    """FormatError unless the file has that ``digest``, or, where none is given, the published one.

    A proving key is hashed whole, once for as long as its file stays the same.
    """
    if digest is None:
        files.check(path, suffix, cache)
    else:
        expect_digest(Source.open(path, "a parameter file"), digest)


def trust_key(
    files: Parameters,
    path: Path,
    suffix: str,
    cache: DigestCache,
    *,
    named: bool,
    digest: str | None,
    insecure: bool,
) -> KeyFile:
    """Whether a located key may be used.

    One found by its name must have the published digest, unless an insecure key is meant; one that was ``named`` as a
    file need not: it is the caller's, who may say its ``digest``.
    """
    if digest is not None or not (named or insecure):
        expect_trusted(files, path, suffix, cache, digest=digest)
    if not (named or digest or insecure):
        return KeyFile(path, published=True, checked=True)
    found, known = _digest_of(path, suffix, cache), DIGESTS.get(files.circuit)
    published = known is not None and found == known[suffix == "vk"]
    return KeyFile(path, published, published or digest is not None)


def _digest_of(path: Path, suffix: str, cache: DigestCache) -> str:
    """Filecoin's digest; of a verifying key the part of a .params file that is the .vk; "" for one of another form."""
    if suffix == "params":
        return cache.digest(path)
    source = Source.open(path, "a verifying key")
    try:
        layout = read_layout(source)
    except FormatError:
        return ""
    return key_digest(source.data[: layout.ic.end])
