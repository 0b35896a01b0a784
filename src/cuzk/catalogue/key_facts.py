"""What a key's file says of itself at its beginning: enough to judge witnesses and to estimate memory.

Nothing is loaded: a .zkey's sections 1 to 3 and 10, a .params file's counts and the points of its verifying key
(those of IC unchecked) are read, again only when size, inode or time of the file are others. Nothing is mapped either
but for digests, which a worker makes: the daemon outlives a file that is cut under it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from cuzk.curves import BLS12_381, Curve
from cuzk.errors import CuzkError
from cuzk.formats.bellman import ParamsLayout, read_vk
from cuzk.formats.iden3.r1cs import read_r1cs_header
from cuzk.formats.iden3.zkey import read_zkey_header, refuse_insecure_header
from cuzk.formats.iden3.zkey_header import COEFFICIENTS, ZkeyHeader, digest, vectors, zkey_frame
from cuzk.formats.on_demand import on_demand
from cuzk.formats.source import Source
from cuzk.groth16 import ProvingKey
from cuzk.load import (
    CIRCUIT,
    KEY,
    key_kind,
    load_circuit,
    load_key,
    open_circuit,
    params_layout,
    refuse_insecure,
)

T = TypeVar("T")
Stamp = tuple[tuple[int, ...] | None, ...]
TERM_BYTES = 36
"""Of an .r1cs: a wire and a coefficient."""


@dataclass(frozen=True)
class KeyFacts:
    """Counts of a key, and of the circuit beside it."""

    curve: Curve
    name: str
    """What messages call the file."""
    wires: int
    log_domain: int
    queries: tuple[tuple[str, int], ...]
    """Group and points of A, B in G1, B in G2, L and H."""
    file_bytes: int
    converted: bool
    """Its points are not used where they lie in the file (bellman's form)."""
    own_terms: int = 0
    """Of the matrices A and B that a .zkey holds."""
    circuit_terms: int = 0
    """Of the A, B and C that are given beside the key, at most."""
    circuit_bytes: int = 0
    """Of the .r1cs that they are read from."""
    evaluated: bool = False
    """The matrices beside the key are evaluated from templates: the host holds no rows, a GPU has them."""


@dataclass
class Remembered:
    """What was made of some files, as long as these stay as they are; what was wrong with them likewise."""

    paths: tuple[Path, ...]
    _stamp: Stamp | None = None
    _known: dict[str, Any] = field(default_factory=dict)

    def get(self, name: str, make: Callable[[], T]) -> T:
        """What ``make`` gives, or raises again the CuzkError that it raised."""
        stamp = tuple(map(_stamp_of, self.paths))
        if None in stamp:  # a look costs nothing, and says why
            return make()
        if stamp != self._stamp:
            self._stamp, self._known = stamp, {}
        known = self._known
        if name not in known:
            try:
                known[name] = make()
            except CuzkError as error:
                known[name] = _Raised(type(error), str(error))
        found = known[name]
        if isinstance(found, _Raised):
            raise found.kind(found.text)
        value: T = found
        return value

    def __getstate__(self) -> dict[str, Any]:
        """The paths alone: another process looks for itself."""
        return {"paths": self.paths, "_stamp": None, "_known": {}}


@dataclass(frozen=True)
class _Raised:
    kind: type[CuzkError]
    text: str


@dataclass(frozen=True)
class KeyOnDisk:
    """A key's file and, for some, the .r1cs beside it."""

    path: Path
    circuit: Path | None
    insecure: bool
    memory: Remembered

    @classmethod
    def at(cls, path: Path, circuit: Path | None = None, *, insecure: bool = False) -> KeyOnDisk:
        """Nothing is looked at."""
        paths = (path,) if circuit is None else (path, circuit)
        return cls(path, circuit, insecure, Remembered(paths))

    def facts(self) -> KeyFacts:
        """CuzkErrors with the text of :func:`cuzk.load_key` for what it refuses after a look at the beginning."""
        return self.memory.get("facts", self._read)

    def digests(self) -> tuple[str, str]:
        """The key's and the circuit's, as messages show them: hashes the coefficients, or loads a .params file."""
        return self.memory.get("digests", self._digests)

    def _read(self) -> KeyFacts:
        with on_demand(self.path, KEY) as source:
            if key_kind(source) == "zkey":
                header = read_zkey_header(source, check_ic=False)
                if not self.insecure:
                    refuse_insecure_header(zkey_frame(source), header)
                return _of_zkey(header, source, self._circuit_bytes())
            layout = params_layout(source, with_circuit=self.circuit is not None)
            beside = self._circuit_bytes()
            if not self.insecure:
                refuse_insecure(read_vk(source, check_ic=False), source.name)
            return of_params(layout, circuit_bytes=beside)

    def _circuit_bytes(self) -> int:
        if self.circuit is None:
            return 0
        with on_demand(self.circuit, CIRCUIT) as source:
            return open_circuit(source).size

    def _digests(self) -> tuple[str, str]:
        source = Source.open(self.path, KEY)
        if key_kind(source) != "zkey":
            key: ProvingKey = load_key(source, self.circuit, insecure_key=True)
            circuit = key.matrices or load_circuit(self.circuit)  # type: ignore[arg-type]
            return key.digest, circuit.digest
        frame = zkey_frame(source)
        own = read_zkey_header(source, check_ic=False).digest
        if self.circuit is None:
            return own, digest(frame, COEFFICIENTS)
        return own, read_r1cs_header(open_circuit(self.circuit)).digest


def _of_zkey(header: ZkeyHeader, source: Source, circuit_bytes: int) -> KeyFacts:
    return KeyFacts(
        curve=header.curve,
        name=source.name,
        wires=header.wires,
        log_domain=header.log_domain,
        queries=tuple(vectors(header).values()),
        file_bytes=source.size,
        converted=False,
        own_terms=header.coefficients,
        circuit_terms=circuit_bytes // TERM_BYTES,
        circuit_bytes=circuit_bytes,
    )


def of_params(layout: ParamsLayout, *, circuit_bytes: int = 0) -> KeyFacts:
    """Of bellman's counts: h has a point less than the domain, l one for each private wire."""
    counts = {name: section.count for name, section in layout.vectors.items()}
    groups = {name: section.group for name, section in layout.vectors.items()}
    return KeyFacts(
        curve=BLS12_381,
        name=layout.name,
        wires=layout.ic.count + counts["l"],
        log_domain=counts["h"].bit_length(),
        queries=tuple((groups[name], counts[name]) for name in ("a", "b_g1", "b_g2", "l", "h")),
        file_bytes=layout.file_bytes,
        converted=True,
        circuit_terms=circuit_bytes // TERM_BYTES,
        circuit_bytes=circuit_bytes,
    )


def _stamp_of(path: Path) -> tuple[int, ...] | None:
    try:
        status = path.stat()
    except (OSError, ValueError):
        return None
    return status.st_size, status.st_ino, status.st_mtime_ns, status.st_ctime_ns
