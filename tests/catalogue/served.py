"""Requests and catalogues for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cuzk.catalogue import Catalogue
from cuzk.config import CircuitSettings, FilecoinSettings
from cuzk.engine.catalogue import OpenCircuit, PartProof
from cuzk.engine.request import Field, Payload, Priority, Request


def circom(name: str, key: Path, **more: Any) -> CircuitSettings:
    return CircuitSettings(id=name, kind="circom", key=key, **more)


def filecoin(name: str, **more: Any) -> CircuitSettings:
    return CircuitSettings(id=name, kind="filecoin", **more)


def catalogue_of(*circuits: CircuitSettings, **of_filecoin: Any) -> Catalogue:
    return Catalogue(circuits, FilecoinSettings(**of_filecoin))


def request(kind: str, fields: dict[str, Field], *blobs: bytes | Path) -> Request:
    """Payloads in memory, or a whole file."""
    payload = tuple(
        Payload.of(blob)
        if isinstance(blob, bytes)
        else Payload(path=blob, size=blob.stat().st_size)
        for blob in blobs
    )
    return Request("r", kind, Priority.NORMAL, fields, payload)


def witness_request(circuit: str, *blobs: bytes | Path) -> Request:
    return request("circuit", {"circuit_id": circuit}, *blobs)


class Opened:
    """A circuit of a catalogue on two threads, closed in the end."""

    def __init__(self, catalogue: Catalogue, name: str, lanes: int | None = None) -> None:
        self._opened = catalogue.open(name, "cpu", 2, lanes)

    def __enter__(self) -> OpenCircuit:
        return self._opened

    def __exit__(self, *_: object) -> None:
        self._opened.close()


def proved(opened: OpenCircuit, name: str, witness: Path) -> PartProof:
    return opened.prove(opened.prepare(witness_request(name, witness)), 0)
