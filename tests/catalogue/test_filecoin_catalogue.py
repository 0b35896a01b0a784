"""Filecoin's circuits as a catalogue: sealing software's requests, field by field, and where they go."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from served import catalogue_of, circom, filecoin, request

from cuzk.curves import BLS12_381
from cuzk.engine.catalogue import Route
from cuzk.engine.request import Field
from cuzk.errors import (
    FormatError,
    NotReady,
)
from cuzk.filecoin.registered import POST, SEAL, UPDATE

NODE = bytes(range(1, 32)) + b"\0"
GIB = 1 << 30


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Nothing of the user's is read or written."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("FIL_PROOFS_PARAMETER_CACHE", raising=False)
    return tmp_path


@pytest.fixture
def everything(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A catalogue of all circuits whose keys are there, as it seems."""
    names = [f"{kind}-{size}" for kind in ("porep", "update", "window", "winning") for size in ("2KiB", "32GiB", "64GiB")]  # fmt: skip
    monkeypatch.setattr("cuzk.catalogue.filecoin.FilecoinCircuit._read", lambda _: SEEN)
    monkeypatch.setattr("cuzk.catalogue.key_facts._stamp_of", lambda _: (1,))
    return catalogue_of(*(filecoin(name) for name in names))


class Seen:
    file_bytes = 1


SEEN = Seen()
UPDATES = {"comm_r_old": NODE, "comm_r_new": NODE, "comm_d_new": NODE}
CURIO: dict[str, tuple[str, dict[str, Field], int, Route]] = {
    # request: kind, fields, blobs, where it goes
    "PoRep": (
        "porep-c2",
        {"sector_size": 32 * GIB, "registered_proof": 8, "sector_number": 7, "miner_id": 1000},
        1,
        Route("porep-32GiB", 10),
    ),
    "PoRep synthetic": (
        "porep-c2",
        {"sector_size": 64 * GIB, "registered_proof": 14, "sector_number": 7, "miner_id": 1000},
        1,
        Route("porep-64GiB", 10),
    ),
    "Snap": (
        "snap-update",
        {"sector_size": 32 * GIB, "registered_proof": 3, "sector_number": 7, "miner_id": 1, **UPDATES},
        16,
        Route("update-32GiB", 16),
    ),
    "PSProve Snap": (
        "snap-update",
        {"registered_proof": 3, "sector_number": 7, "miner_id": 1000, **UPDATES},
        16,
        Route("update-32GiB", 16),
    ),
    "WindowPoSt": (
        "window-post",
        {"sector_size": 32 * GIB, "registered_proof": 13, "miner_id": 1, "randomness": NODE, "partition_index": 2},
        2349,
        Route("window-32GiB", 1),
    ),
    "WindowPoSt of the first version": (
        "window-post",
        {"sector_size": 32 * GIB, "registered_proof": 8, "miner_id": 1, "randomness": NODE},
        1,
        Route("window-32GiB", 1),
    ),
    "WinningPoSt": (
        "winning-post",
        {"sector_size": 32 * GIB, "registered_proof": 3, "miner_id": 1000, "randomness": NODE},
        1,
        Route("winning-32GiB", 1),
    ),
    "2 KiB, whose numbers are 0 and so not set": (
        "snap-update",
        {"sector_size": 2048, **UPDATES},
        1,
        Route("update-2KiB", 1),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CURIO)
def test_sealing_softwares_requests(name: str, everything: Any) -> None:
    kind, fields, blobs, route = CURIO[name]
    assert everything.route(request(kind, fields, *[b"x"] * blobs)) == route


WRONG: dict[str, tuple[str, dict[str, Field], str]] = {
    "a number of no proof": ("PoRep", {"registered_proof": 20}, "registered_proof: expected a seal proof, 0 to 19 or a name like StackedDrg32GiBV1, found 20"),
    "a number of no update": ("Snap", {"registered_proof": 5}, "registered_proof: expected a update proof, 0 to 4"),
    "no number": ("PoRep", {"registered_proof": "8"}, "registered_proof: expected a whole number, found '8'"),
    "another family of PoSt": ("WindowPoSt", {"registered_proof": 3}, "registered_proof: expected one of kind window-post, found 3 (StackedDrgWinning32GiBV1)"),
    "the other one": ("WinningPoSt", {"registered_proof": 13}, "registered_proof: expected one of kind winning-post, found 13 (StackedDrgWindow32GiBV1_2)"),
    "non-interactive": ("PoRep", {"registered_proof": 18}, "registered_proof: expected interactive or synthetic challenges, found 18"),
    "sector size": ("PoRep", {"sector_size": 64 * GIB}, "sector_size: expected 34359738368, as StackedDrg32GiBV1_1 says, found 68719476736"),
    "no miner": ("PoRep", {"miner_id": 0}, "miner_id: expected one with sector_number 7, found none"),
    "a large miner": ("PoRep", {"miner_id": 1 << 63}, "actor id: expected 0 to 9223372036854775807, found 9223372036854775808"),
    "31 bytes": ("Snap", {"comm_r_old": NODE[1:]}, "comm_r_old: expected 32 bytes, found 31"),
    "33 bytes": ("Snap", {"comm_d_new": NODE + b"\0"}, "comm_d_new: expected 32 bytes, found 33"),
    "no bytes": ("Snap", {"comm_r_new": b""}, "comm_r_new: expected 32 bytes, found none"),
    "zero": ("Snap", {"comm_r_new": bytes(32)}, "comm_r_new: expected a value other than zero, found zero"),
    "r": ("Snap", {"comm_r_new": BLS12_381.r.to_bytes(32, "little")}, "comm_r_new: expected a value below r, found 01000000"),
    "randomness": ("WindowPoSt", {"randomness": NODE[1:]}, "randomness: expected 32 bytes, found 31"),
    "large randomness": ("WinningPoSt", {"randomness": b"\xff" * 32}, "randomness: expected a value below r"),
    "a partition of a WinningPoSt": ("WinningPoSt", {"partition_index": 1}, "partition_index: expected none of a WinningPoSt, found 1"),
    "a text": ("WindowPoSt", {"partition_index": b"1"}, "partition_index: expected a whole number, found 1 bytes"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_field_is_named(case: str, everything: Any) -> None:
    name, wrong, message = WRONG[case]
    kind, fields, blobs, _ = CURIO[name]
    with pytest.raises(FormatError) as caught:
        everything.route(request(kind, {**fields, **wrong}, *[b"x"] * blobs))
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("name", "blobs", "message"),
    [
        ("PoRep", 0, "vanilla_proof: expected 1 C1 output, found none"),
        ("PoRep", 2, "vanilla_proof: expected 1 C1 output, found 2"),
        ("Snap", 15, "vanilla_proofs: expected 16 partitions of StackedDrg32GiBV1, found 15"),
        ("WindowPoSt", 0, "vanilla_proofs: expected 1 to 2349 sectors of"),
        ("WindowPoSt", 2350, "vanilla_proofs: expected 1 to 2349 sectors of"),
        ("WinningPoSt", 2, "vanilla_proofs: expected 1 sectors of"),
    ],
)
def test_vanilla_proofs_are_counted(name: str, blobs: int, message: str, everything: Any) -> None:
    kind, fields, _, _ = CURIO[name]
    with pytest.raises(FormatError, match=re.escape(message)):
        everything.route(request(kind, fields, *[b"x"] * blobs))


@pytest.mark.parametrize("name", ["randomness", "comm_r_old", "comm_r_new", "comm_d_new"])
def test_a_missing_field_is_named(name: str, everything: Any) -> None:
    kind, fields, blobs, _ = CURIO["WindowPoSt" if name == "randomness" else "Snap"]
    rest = {key: value for key, value in fields.items() if key != name}
    with pytest.raises(FormatError, match=f"^{name}: expected 32 bytes, found none$"):
        everything.route(request(kind, rest, *[b"x"] * blobs))


def test_circuits_that_are_not_served() -> None:
    catalogue = catalogue_of(filecoin("window-2KiB"), circom("c", Path("c.zkey")))
    kind, fields, _, _ = CURIO["PoRep"]
    with pytest.raises(
        NotReady,
        match=r"^porep-32GiB: expected it among the configuration's circuits \(window-2KiB\)",
    ):
        catalogue.route(request(kind, fields, b"x"))


def test_names() -> None:
    sizes = {"porep": "porep", "window": "wpost", "winning": "winning", "update": "snap"}
    catalogue = catalogue_of(*(filecoin(f"{kind}-32GiB") for kind in sizes), filecoin("mine", proof="porep-64GiB"))  # fmt: skip
    for kind, short in sizes.items():
        assert (
            catalogue.named(f"{short}-32g") == f"{kind}-32GiB" == catalogue.named(f"{kind}-32GiB")
        )
    assert catalogue.named("porep-64g") == "mine"
    for name in ("porep-64GiB", "snap-64g", ""):
        with pytest.raises(NotReady, match="expected one of the configuration's"):
            catalogue.named(name)
    with pytest.raises(FormatError, match="circuit x: proof: expected one like porep-32GiB"):
        catalogue_of(filecoin("x"))


def test_every_proof_type_has_its_kind(everything: Any) -> None:
    """All numbers of sizes that are served go where their circuit is."""
    for kind, proofs in (("porep-c2", SEAL[:15]), ("snap-update", UPDATE), ("window-post", POST[5:]), ("winning-post", POST[:5])):  # fmt: skip
        for proof in proofs:
            if proof.shape.name in ("8MiB", "512MiB"):
                continue
            fields: dict[str, Field] = {"registered_proof": proof.number, **UPDATES}
            fields["randomness"] = NODE
            blobs = proof.partitions if kind == "snap-update" else 1
            route = everything.route(request(kind, fields, *[b"x"] * blobs))
            assert route == Route(proof.circuit, proof.partitions)
