"""Files into objects, told apart by their content and never by their name."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cuzk.curves import Curve, curve_named
from cuzk.errors import CircuitError, FormatError, InsecureKeyError
from cuzk.formats.bellman import (
    ParamsLayout,
    file_digest,
    read_layout,
    read_params,
    read_params_layout,
    read_proof_bytes,
    read_vk,
)
from cuzk.formats.iden3.r1cs import read_r1cs
from cuzk.formats.iden3.wtns import read_wtns
from cuzk.formats.iden3.zkey import read_zkey, read_zkey_header
from cuzk.formats.snarkjs_json import read_proof, read_public, read_verification_key
from cuzk.formats.source import Readable, Source
from cuzk.groth16 import Proof, ProvingKey, VerifyingKey, insecurity
from cuzk.r1cs import ConstraintSystem, Matrices
from cuzk.vectors import Scalars

PROOF_BYTES = 192
KEY = "a .zkey or .params file"
CIRCUIT = "an .r1cs file"
KINDS = {
    "zkey": "a .zkey (a proving key)",
    "r1cs": "an .r1cs (a circuit)",
    "wtns": "a .wtns (a witness)",
    "ptau": "a .ptau (powers of tau)",
    "object": "a JSON object",
    "array": "a JSON array",
    "raw": "a witness without a header, as 32-byte values",
    "": "a file of another kind",
}


def kind_of(source: Source) -> str:
    """A key of KINDS; bellman's files have no mark and are ""."""
    magic = source.at(0, 4).tobytes()
    if magic in (b"zkey", b"r1cs", b"wtns", b"ptau"):
        return magic.decode()
    start = source.at(0, 4096).tobytes().removeprefix(b"\xef\xbb\xbf")
    first = start.lstrip()[:1]
    # One in 650 of bellman's keys begins like JSON, with a coordinate such as 0a 7b ..: they are no text.
    if first in (b"{", b"[") and not start.translate(None, bytes(range(32, 256)) + b"\t\n\r"):
        return "object" if first == b"{" else "array"
    if source.size % 32 == 0 and source.at(0, 32).tobytes() == (1).to_bytes(32, "little"):
        return "raw"
    return ""


def name_of(what: object, otherwise: str) -> str:
    """What messages call an input."""
    if isinstance(what, str | os.PathLike):
        return Path(os.fsdecode(what)).name
    name = getattr(what, "name", None)
    return name if isinstance(name, str) else otherwise


def load_key(
    what: Readable,
    circuit: ConstraintSystem | Readable | None = None,
    *,
    digest: str | None = None,
    insecure_key: bool = False,
    threads: int = 1,
) -> ProvingKey:
    """A proving key: a .zkey, or bellman's .params, which need the ``circuit`` beside them.

    ``what`` is a path, bytes, anything with the buffer protocol, or a binary file. Points are used where
    they lie, so a file must stay as it is meanwhile. ``digest`` is the hexadecimal BLAKE2b-512 of the
    whole file or its first 32 digits, as Filecoin publishes them: FormatError where the file has another.
    Raises InsecureKeyError for a key whose delta is known, unless ``insecure_key``.
    """
    source = Source.open(what, KEY)
    if digest is not None:
        expect_digest(source, digest)
    if key_kind(source) == "zkey":
        key = read_zkey(source, insecure_key=insecure_key, threads=threads)
    else:
        key = _load_params(source, circuit, threads)
    if not insecure_key:
        refuse_insecure(key.vk, key.source)
    return key


def key_kind(source: Source) -> str:
    """ "zkey", or "" for what must be bellman's; FormatError for a file of another kind."""
    if (kind := kind_of(source)) not in ("zkey", ""):
        raise _unexpected(source, KEY, kind)
    return kind


def expect_digest(source: Source, digest: str) -> None:
    """FormatError unless the file's BLAKE2b-512 is this one: all 128 hexadecimal digits or the first 32."""
    wanted = digest.strip().lower()
    if len(wanted) not in (32, 128) or wanted.strip("0123456789abcdef"):
        raise FormatError(
            f"digest: expected 32 or 128 hexadecimal digits of a BLAKE2b-512, found {digest!r}"
        )
    found = file_digest(source.data)[: len(wanted)]
    if found != wanted:
        raise FormatError(
            f"{source.name}: expected the file with digest {wanted}, found {found}: it is damaged or another "
            "file; fetch it again"
        )


def _load_params(
    source: Source, circuit: ConstraintSystem | Readable | None, threads: int
) -> ProvingKey:
    params_layout(source, with_circuit=circuit is not None)
    if not isinstance(circuit, ConstraintSystem):
        circuit = load_circuit(circuit)  # type: ignore[arg-type]  # there is one
    return read_params(source, circuit, threads=threads)


def params_layout(source: Source, *, with_circuit: bool) -> ParamsLayout:
    """Of a .params file, which must have a circuit beside it: CircuitError where there is none."""
    with _without_mark("bellman's .params"):
        layout = read_params_layout(source)
    if not with_circuit:
        raise CircuitError(
            f"{source.name}: a .params file holds no circuit: expected the .r1cs beside it, found none"
        )
    return layout


@contextmanager
def _without_mark(taken_for: str) -> Iterator[None]:
    """Errors of a file that names no type say what it was taken for."""
    try:
        yield
    except FormatError as error:
        raise FormatError(
            f"{error} (the file names no type and so was taken for {taken_for})"
        ) from None


def refuse_insecure(vk: VerifyingKey, name: str) -> None:
    """InsecureKeyError where delta or another element is known: anyone could forge such a key's proofs."""
    if reason := insecurity(vk):
        raise InsecureKeyError(
            f"{name}: expected secrets that nobody knows, found an insecure key: {reason}: anyone can forge proofs "
            "for it; contribute to it, or say that an insecure key is meant"
        )


def load_circuit(what: Readable) -> Matrices:
    """The circuit of an .r1cs file."""
    return read_r1cs(open_circuit(what))


def open_circuit(what: Readable) -> Source:
    """An .r1cs file that is not read; FormatError for a file of another kind."""
    source = Source.open(what, CIRCUIT)
    if (kind := kind_of(source)) not in ("r1cs", ""):
        raise _unexpected(source, CIRCUIT, kind)
    return source


def load_witness(what: Readable, *, threads: int = 1) -> Scalars:
    """The values of all wires of a .wtns file, plain form."""
    source = Source.open(what, "a .wtns file")
    if (kind := kind_of(source)) not in ("wtns", "raw", ""):
        raise _unexpected(source, "a .wtns file", kind)
    return read_wtns(source, threads=threads)


def load_verifying_key(
    what: Readable, *, insecure_key: bool = False, threads: int = 1
) -> VerifyingKey:
    """The verifying key of a verification_key.json, .zkey, .vk or .params; all its points are checked.

    Raises InsecureKeyError for a key whose delta is known, unless ``insecure_key``.
    """
    source = Source.open(what, "a verifying key")
    kind = kind_of(source)
    if kind == "object":
        vk = read_verification_key(source, threads=threads)
    elif kind == "zkey":
        vk = read_zkey_header(source, threads=threads).vk
    elif kind:
        raise _unexpected(source, "a verification_key.json, .zkey, .vk or .params file", kind)
    else:
        with _without_mark("bellman's .vk or .params"):
            read_layout(source)
        vk = read_vk(source, threads=threads)
    if not insecure_key:
        refuse_insecure(vk, source.name)
    return vk


def load_proof(what: Readable, curve: Curve | str | None = None) -> Proof:
    """A proof.json, or bellman's 192 bytes (BLS12-381).

    ``curve`` is the verifying key's: taken where the file names none, and it must agree where one does.
    """
    expected = "a proof.json or a proof of 192 bytes"
    source = Source.open(what, expected)
    curve = curve_named(curve) if isinstance(curve, str) else curve
    kind = kind_of(source)
    if kind == "object":
        return read_proof(source, curve)
    if kind:
        raise _unexpected(source, expected, kind)
    if source.size != PROOF_BYTES:
        raise FormatError(f"{source.name}: expected {expected}, found {source.size} bytes, no JSON")
    return read_proof_bytes(source.data.tobytes(), source.name)


def load_public(what: Readable, curve: Curve | str) -> list[int]:
    """The public signals of a public.json, each below the scalar field's prime of ``curve``."""
    source = Source.open(what, "a public.json")
    kind = kind_of(source)
    if kind not in ("array", ""):
        raise _unexpected(source, "a public.json (an array of numbers)", kind)
    return read_public(source, curve_named(curve) if isinstance(curve, str) else curve)


def _unexpected(source: Source, expected: str, kind: str) -> FormatError:
    return FormatError(f"{source.name}: expected {expected}, found {KINDS[kind]}")
