"""The tables of the settings, with their defaults; what only makes sense together is checked here."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

from cuzk.config.addresses import address
from cuzk.config.values import (
    AutomaticSize,
    Duration,
    FilePath,
    Listen,
    OptionalPath,
    Size,
    automatic_count,
    row,
    shown,
)

DEVICE = re.compile(r"auto|cpu|cuda(:([0-9]{1,4}|GPU-[0-9a-f-]{4,36}))?")
ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
DIGEST = re.compile(r"[0-9a-fA-F]{32}|[0-9a-fA-F]{128}")
MOST_LANES = 4
SHORTEST_PATIENCE = 5.0  # seconds: Python that reads a request of 50 MB holds a process up for 0.5
PARAMETERS = "/var/tmp/filecoin-proof-parameters"
"""As cuzk.filecoin.parameters has it (a test compares them)."""
Threads = Annotated[int, Field(ge=1, le=4096)]
Lanes = Annotated[int, Field(ge=1, le=MOST_LANES)]


class Table(BaseModel):
    """One table: frozen, no key but these."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, validate_default=True)


class DaemonSettings(Table):
    """[daemon]"""

    listen: Listen = "127.0.0.1:9820"
    status_listen: Listen = "127.0.0.1:9821"
    state: FilePath = Path("~/.local/state/cuzk")
    drain: Duration = 300.0
    log_level: Literal["debug", "info", "warning", "error"] = "info"

    @model_validator(mode="after")
    def _apart(self) -> Self:
        if not self.listen:
            raise ValueError("listen: expected an address, found none")
        if self.status_listen:
            both = address(self.listen), address(self.status_listen)
            if both[0] == both[1] and (both[0].path or both[0].port):
                raise ValueError(
                    f"status_listen: expected another address than listen, found {both[0]}"
                )
        return self


class SecuritySettings(Table):
    """[security]"""

    allow_remote: bool = False
    tls_certificate: OptionalPath = None
    tls_key: OptionalPath = None
    token_file: OptionalPath = None
    client_requests: Annotated[int, Field(ge=1, le=1 << 20)] = 256
    message_limit: Size = 256 << 20

    @model_validator(mode="after")
    def _pairs(self) -> Self:
        for name, other in (("tls_certificate", "tls_key"), ("tls_key", "tls_certificate")):
            if getattr(self, name) is None and getattr(self, other) is not None:
                raise ValueError(f"{name}: expected one with {other}, found none")
        if not self.message_limit:
            raise ValueError("message_limit: expected at least 1 byte, found 0")
        return self


class MemorySettings(Table):
    """[memory]; None is "auto"."""

    host: AutomaticSize = None
    pinned: AutomaticSize = None
    device: AutomaticSize = None
    margin: AutomaticSize = None
    headroom: AutomaticSize = None


class DeviceSettings(Table):
    """[devices]; None is "auto"."""

    use: Annotated[tuple[str, ...], BeforeValidator(row)] = ("auto",)
    threads: Annotated[Threads | None, BeforeValidator(automatic_count)] = None
    lanes: Annotated[Lanes | None, BeforeValidator(automatic_count)] = None
    patience: Duration = 300.0

    @field_validator("patience")
    @classmethod
    def _long(cls, patience: float) -> float:
        if patience < SHORTEST_PATIENCE:
            raise ValueError(f"expected {SHORTEST_PATIENCE:g} s or more, found {patience:g} s")
        return patience

    @field_validator("use")
    @classmethod
    def _known(cls, use: tuple[str, ...]) -> tuple[str, ...]:
        if not use:
            raise ValueError("expected at least one device, found none")
        for i, name in enumerate(use):
            if not DEVICE.fullmatch(name):
                raise ValueError(
                    f"expected auto, cpu, cuda, cuda:N or cuda:GPU-UUID, found {shown(name)}"
                )
            if name in use[:i]:
                raise ValueError(f"expected each device once, found {name} twice")
        if "auto" in use and len(use) > 1:
            raise ValueError('expected "auto" alone or devices by name, found both')
        return use


class QueueSettings(Table):
    """[queue]"""

    limit: Annotated[int, Field(ge=1, le=1 << 20)] = 1000
    bytes: Size = 16 << 30
    critical: Annotated[int, Field(ge=0, le=1 << 20)] = 16
    ageing: Duration = 600.0
    keep: Duration = 86400.0
    losses: Annotated[int, Field(ge=1, le=100)] = 3


class FilecoinSettings(Table):
    """[filecoin]"""

    parameters: FilePath = Path(PARAMETERS)
    insecure_keys: bool = False


class CircuitSettings(Table):
    """[[circuit]]: ``key`` may be missing for Filecoin, whose files have names; ``proof`` is "porep-32GiB"."""

    id: str
    kind: Literal["circom", "filecoin"]
    key: OptionalPath = None
    proof: str | None = None
    circuit: OptionalPath = None
    key_digest: str | None = None
    insecure_key: bool = False
    preload: bool = False

    @property
    def proves(self) -> str:
        """Of kind "filecoin": whose proofs it makes."""
        return self.proof or self.id

    @model_validator(mode="after")
    def _of_kind(self) -> Self:
        if not ID.fullmatch(self.id):
            raise ValueError(
                f"id: expected letters, digits, '.', '_' and '-' (100 at most), found {shown(self.id)}"
            )
        if self.key_digest is not None and not DIGEST.fullmatch(self.key_digest):
            raise ValueError(
                "key_digest: expected 32 or 128 hexadecimal digits of a BLAKE2b-512, found "
                f"{shown(self.key_digest)}"
            )
        if self.kind == "circom" and self.key is None:
            raise ValueError("key: expected a .zkey or .params file, found none")
        strange = "proof" if self.kind == "circom" else "circuit"
        if getattr(self, strange) is not None:
            raise ValueError(f"{strange}: expected none with kind {self.kind}, found one")
        return self


class Settings(Table):
    """All of the file."""

    daemon: DaemonSettings = Field(default_factory=DaemonSettings)
    security: SecuritySettings = Field(default_factory=SecuritySettings)
    memory: MemorySettings = Field(default_factory=MemorySettings)
    devices: DeviceSettings = Field(default_factory=DeviceSettings)
    queue: QueueSettings = Field(default_factory=QueueSettings)
    filecoin: FilecoinSettings = Field(default_factory=FilecoinSettings)
    circuits: Annotated[tuple[CircuitSettings, ...], BeforeValidator(row)] = Field(
        default=(), alias="circuit"
    )

    @model_validator(mode="after")
    def _closed(self) -> Self:
        """Nobody else's machine gets in without a line that says so, a certificate and a token."""
        for name in ("listen", "status_listen"):
            text = getattr(self.daemon, name)
            if not text or address(text).local:
                continue
            if not self.security.allow_remote:
                raise ValueError(
                    f"daemon.{name}: expected a loopback address or a Unix socket, found {text!r}: for other "
                    "machines set security.allow_remote = true, tls_certificate, tls_key and token_file"
                )
            for needed in ("tls_certificate", "tls_key", "token_file"):
                if getattr(self.security, needed) is None:
                    raise ValueError(
                        f"security.{needed}: expected one where daemon.{name} is {text!r}, which other "
                        "machines reach, found none"
                    )
        return self

    @model_validator(mode="after")
    def _once(self) -> Self:
        for name, of in (("id", "circuits"), ("proof", "Filecoin circuits")):
            seen: set[str] = set()
            for i, circuit in enumerate(self.circuits):
                if name == "proof" and circuit.kind != "filecoin":
                    continue
                value = circuit.id if name == "id" else circuit.proves
                if value in seen:
                    raise ValueError(
                        f"circuit[{i}].{name}: expected one that no other has, found {value!r} twice "
                        f"among {of}"
                    )
                seen.add(value)
        return self
