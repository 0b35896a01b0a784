"""A SubmitProofRequest's bytes as the engine's request: its payloads stay where they came in, the rest is parsed.

A kind has its payload in one field: ``vanilla_proof`` for a PoRep, ``vanilla_proofs`` for SnapDeals and both PoSts,
``witness`` for a circuit of the configuration.
"""

from __future__ import annotations

import uuid
from types import MappingProxyType

from google.protobuf.message import DecodeError

from cuzk.engine.request import Field, Priority, Request
from cuzk.errors import FormatError
from cuzk.server.proving_pb2 import ProofKind, ProveRequest, SubmitProofRequest
from cuzk.server.receive import Message
from cuzk.server.wire import Parts, split, split_inside

ID_BYTES = 256
PAYLOADS = {
    SubmitProofRequest.VANILLA_PROOF_FIELD_NUMBER: "vanilla_proof",
    SubmitProofRequest.VANILLA_PROOFS_FIELD_NUMBER: "vanilla_proofs",
    SubmitProofRequest.WITNESS_FIELD_NUMBER: "witness",
}
REPEATED = {"vanilla_proofs"}
KINDS = {
    ProofKind.POREP_SEAL_COMMIT: ("porep-c2", "vanilla_proof"),
    ProofKind.SNAP_DEALS_UPDATE: ("snap-update", "vanilla_proofs"),
    ProofKind.WINDOW_POST_PARTITION: ("window-post", "vanilla_proofs"),
    ProofKind.WINNING_POST: ("winning-post", "vanilla_proofs"),
    ProofKind.CIRCUIT: ("circuit", "witness"),
}
PRIORITIES = {"winning-post": Priority.CRITICAL, "window-post": Priority.HIGH}
"""Where a request names none that there is; NORMAL for other kinds."""
NOT_FIELDS = {"request_id", "proof_kind", "priority", "deadline_ms", *PAYLOADS.values()}


def read_submit(message: Message, *, client: str, now: float, named: bool = False) -> Request:
    """From a SubmitProofRequest; FormatError. ``named``: the caller learns the id even where he gave none."""
    return _request(message, split(message.view(), PAYLOADS), client, now, named=named)


def read_prove(message: Message, *, client: str, now: float) -> Request:
    """From a ProveRequest; FormatError."""
    parts = split_inside(message.view(), ProveRequest.SUBMIT_FIELD_NUMBER, PAYLOADS)
    if not parts.found:
        raise FormatError("submit: expected a request, found none")
    return _request(message, parts, client, now, named=False)


def _request(message: Message, parts: Parts, client: str, now: float, *, named: bool) -> Request:
    try:
        submit = SubmitProofRequest.FromString(bytes(parts.rest))
    except DecodeError as error:
        raise FormatError(f"message: expected a SubmitProofRequest: {error}") from None
    if submit.proof_kind not in KINDS:
        known = ", ".join(f"{ProofKind.Name(kind)} ({kind})" for kind in KINDS)
        raise FormatError(f"proof_kind: expected one of {known}, found {int(submit.proof_kind)}")
    kind, payload_field = KINDS[submit.proof_kind]
    check_id(submit.request_id)
    ranges = _payload(parts, kind, payload_field)
    fields: dict[str, Field] = {
        entry.name: value for entry, value in submit.ListFields() if entry.name not in NOT_FIELDS
    }
    return Request(
        id=submit.request_id or str(uuid.uuid4()),
        kind=kind,
        priority=_priority(submit.priority, kind),
        fields=MappingProxyType(fields),
        payload=tuple(message.payload(start, end) for start, end in ranges),
        deadline=now + submit.deadline_ms / 1000 if submit.deadline_ms else None,
        client=client,
        named=named or bool(submit.request_id),
    )


def check_id(name: str) -> None:
    """FormatError where a request's id is too long, or could do something to whoever prints it."""
    size = len(name.encode())
    if size > ID_BYTES:
        raise FormatError(f"request_id: expected at most {ID_BYTES} bytes, found {size:,}")
    if not name.isprintable():
        raise FormatError(f"request_id: expected printable characters, found {name!a}")


def _payload(parts: Parts, kind: str, wanted: str) -> list[tuple[int, int]]:
    """Of a singular field that came twice the last; an empty one is as good as none."""
    found: list[tuple[int, int]] = []
    for number, ranges in parts.large.items():
        name = PAYLOADS[number]
        kept = ranges if name in REPEATED else [(a, b) for a, b in ranges[-1:] if a < b]
        if kept and name != wanted:
            raise FormatError(f"{name}: expected none for {kind}, whose payload is {wanted}")
        found = kept or found
    if not found:
        raise FormatError(f"{wanted}: expected a payload for {kind}, found none")
    return found


def _priority(number: int, kind: str) -> Priority:
    try:
        return Priority(number)
    except ValueError:
        return PRIORITIES.get(kind, Priority.NORMAL)
