"""What the catalogue knows of one circuit, whatever its kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np

from cuzk.catalogue.key_facts import KeyFacts
from cuzk.config import CircuitSettings
from cuzk.engine.catalogue import CircuitEntry, OpenCircuit
from cuzk.engine.request import Field, Payload, Request
from cuzk.errors import FormatError
from cuzk.formats.source import Source


class KnownCircuit(Protocol):
    """One circuit of the configuration. All of it is picklable and holds no key."""

    @property
    def settings(self) -> CircuitSettings:
        """Its table."""

    @property
    def kind(self) -> str:
        """The request kind that it is for."""

    @property
    def aliases(self) -> tuple[str, ...]:
        """Other names."""

    def facts(self) -> KeyFacts:
        """CuzkError where its key cannot be used."""

    def blank(self) -> CircuitEntry:
        """From the settings alone."""

    def entry(self) -> CircuitEntry:
        """As it is now, with its fault if it has one."""

    def partitions(self, request: Request) -> int:
        """FormatError names a field that is missing or wrong."""

    def check(self, request: Request) -> None:
        """Is the payload well-formed and this circuit's?"""

    def open(self, device: str, threads: int | None, lanes: int | None) -> OpenCircuit:
        """Load the key."""


def source_of(payload: Payload, name: str, expected: str) -> Source:
    """A payload as the readers take files; ``name`` is what messages call it."""
    if not payload.size:
        raise FormatError(f"{name}: expected {expected}, found an empty file")
    return Source(name, np.frombuffer(payload.view(), dtype=np.uint8))


def number_of(fields: Mapping[str, Field], name: str) -> int:
    """A whole number; 0 where the field is not set, as in the message."""
    value = fields.get(name, 0)
    if type(value) is not int or value < 0:
        raise FormatError(f"{name}: expected a whole number, found {_shown(value)}")
    return value


def node_of(fields: Mapping[str, Field], name: str) -> bytes:
    """Exactly 32 bytes."""
    value = fields.get(name, b"")
    if not isinstance(value, bytes):
        raise FormatError(f"{name}: expected 32 bytes, found {_shown(value)}")
    if len(value) != 32:
        raise FormatError(f"{name}: expected 32 bytes, found {len(value) or 'none'}")
    return value


def _shown(value: Field) -> str:
    return f"{len(value)} bytes" if isinstance(value, bytes) else ascii(value)[:80]
