"""Filecoin's circuits as a catalogue: sealing software's requests, field by field; faults; proofs that verify."""

from __future__ import annotations

import json
import pickle
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from made_posts import RANDOMNESS, MadeSector, made_sector
from made_sectors import PROVER, SECTOR, sealed
from own_files import own_files, params_file
from served import catalogue_of, circom, filecoin, request

import cuzk.cli.app as app
from cuzk.catalogue.filecoin_requests import read_vanilla, task_of
from cuzk.curves import BLS12_381
from cuzk.engine.catalogue import OpenCircuit, PartProof, Route
from cuzk.engine.request import Field, Request
from cuzk.errors import (
    CuzkError,
    FormatError,
    InsecureKeyError,
    NotReady,
    ProofError,
    UnsatisfiedError,
)
from cuzk.filecoin.derive import prover_id
from cuzk.filecoin.parameters import parameters_named
from cuzk.filecoin.registered import POST, SEAL, UPDATE, RegisteredProof, registered
from cuzk.filecoin.statement import PostStatement, SealStatement, Sector
from cuzk.filecoin.task import Task
from cuzk.filecoin.verify import verify
from cuzk.formats.bellman import read_vk
from cuzk.verifier import Verifier

WINDOW = registered("post", "StackedDrgWindow2KiBV1")
NODE = bytes(range(1, 32)) + b"\0"
GIB = 1 << 30


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Nothing of the user's is read or written."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("FIL_PROOFS_PARAMETER_CACHE", raising=False)
    return tmp_path


# Which requests there are. There need be no key: only where a request goes is looked at.


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


# Keys


CIRCUIT = "window-2KiB"
STEM = parameters_named(CIRCUIT).stem


def served(**more: Any) -> Any:
    given = {"insecure_key": True, **more}
    return catalogue_of(filecoin("w", proof=CIRCUIT, **given), parameters=own_files(CIRCUIT))


def test_l14_a_missing_key_is_a_fault_that_says_how_to_get_it(tmp_path: Path) -> None:
    there = own_files(CIRCUIT)
    shutil.copytree(there, tmp_path / "keys")
    catalogue = catalogue_of(
        filecoin(CIRCUIT), filecoin("winning-2KiB"), parameters=tmp_path / "keys", insecure_keys=True
    )  # fmt: skip
    window, winning = catalogue.entries()
    assert (window.fault, window.key_bytes, window.kind) == ("", 11_501_496, "window-post")
    assert window.key == str(tmp_path / "keys" / f"{STEM}.params")
    absent = f"{tmp_path}/keys/{parameters_named('winning-2KiB').stem}.params"
    assert winning.fault.startswith(f"{absent}: expected the .params file of winning-2KiB, found no such file: fetch it with `lotus fetch-params 2KiB`")  # fmt: skip
    nowhere = catalogue_of(filecoin(CIRCUIT), parameters=tmp_path / "nowhere").entries()[0]
    assert "found no such directory" in nowhere.fault
    with pytest.raises(NotReady, match=r"winning-2KiB: not ready: .*lotus fetch-params 2KiB"):
        catalogue.route(request("winning-post", {"randomness": NODE}, b"x"))
    with pytest.raises(FormatError, match="lotus fetch-params"):
        catalogue.open("winning-2KiB", "cpu", 1, 1)


def test_l1_l5_keys_that_change(tmp_path: Path) -> None:
    key = tmp_path / "w.params"
    catalogue = catalogue_of(
        filecoin(CIRCUIT, key=key, insecure_key=True), filecoin("other", proof="porep-2KiB")
    )
    data = params_file(CIRCUIT).read_bytes()
    vk = params_file(CIRCUIT).with_suffix(".vk").read_bytes()
    for content, words in (
        (None, "w.params: expected a .params file, found no file of that name"),
        (data, ""),
        (b"", "found an empty file"),
        (data[: len(data) // 2], "w.params: a: expected 16793 points"),
        (data[:-1], "w.params: b_g2: expected "),
        (data[:864] + b"\xff" * 4 + data[868:], "w.params: ic: expected 4294967295 points"),
        (vk, "w.params: expected a .params file, found a .vk"),
        (b"zkey" + data[4:], "w.params: expected a .params file, found a .zkey"),
        (b"wtns" + data[4:], "w.params: expected a .zkey or .params file, found a .wtns"),
        (data, ""),
    ):
        if content is not None:
            key.write_bytes(content)
        found, other = catalogue.entries()
        assert words in found.fault
        assert bool(found.fault) == bool(words)
        assert "porep-2KiB" in other.fault


def test_which_keys_are_trusted(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not one made here, unless that is meant; the words are the command line's."""
    strict = served(insecure_key=False)
    assert "insecure key: delta = gamma" in strict.entries()[0].fault
    with pytest.raises(InsecureKeyError):
        strict.open("w", "cpu", 1, 1)
    # the same file, if its points were not known to be insecure
    monkeypatch.setattr("cuzk.catalogue.filecoin.refuse_insecure", lambda *_: None)
    sectors, statement = [tmp_path / "5.vproof"], tmp_path / "statement.json"
    sectors[0].write_bytes(made_sector(WINDOW, 5).blob)
    statement.write_text(json.dumps(window_fields(made_sector(WINDOW, 5))))
    monkeypatch.chdir(tmp_path)
    command = ["filecoin", "prove", *map(str, sectors), "--statement", str(statement)]
    assert app.run([*command, "--params", str(own_files(CIRCUIT)), "--json"]) == 2
    message = json.loads(capsys.readouterr().out)["error"]["message"]
    assert message.startswith(
        f"{STEM}.params: expected the digest 7610b9f82bfc88405b7a832b651ce2f6"
    )
    with pytest.raises(FormatError) as caught:
        served(insecure_key=False).open("w", "cpu", 1, 1)
    assert str(caught.value) == message
    with pytest.raises(FormatError, match="expected the file with digest 0000"):
        served(key_digest="0" * 32).open("w", "cpu", 1, 1)


def test_a_key_of_another_circuit() -> None:
    catalogue = catalogue_of(filecoin("winning-2KiB", key=params_file(CIRCUIT), insecure_key=True))
    with pytest.raises(CuzkError, match="ic: expected 133 points, as winning-2KiB has, found 23"):
        catalogue.open("winning-2KiB", "cpu", 1, 1)


# Vanilla proofs


def window_fields(*made: MadeSector) -> dict[str, Any]:
    return {
        "registered_post_proof": WINDOW.name,
        "randomness": RANDOMNESS.hex(),
        "sectors": [{"sector": s.number, "comm_r": s.comm_r.hex()} for s in made],
    }


def window_request(*blobs: bytes, **more: Field) -> Request:
    fields = {"registered_proof": 5, "randomness": RANDOMNESS, "sector_size": 2048, **more}
    return request("window-post", fields, *blobs)


def bad_sectors() -> dict[str, bytes]:
    good = made_sector(WINDOW, 9, 1).blob
    return {
        "cut": good[:-1],
        "half": good[: len(good) // 2],
        "trailing": good + b"\0",
        "another size": b"\0" * 16,
        "not below r": good[:8] + b"\xff" * 32 + good[40:],
        "zero comm_r": good[:8] + bytes(32) + good[40:],
        "a root": good[:-8] + bytes([good[-8] ^ 1]) + good[-7:],
        "count": good[:40] + b"\2" + good[41:],
    }


@pytest.mark.parametrize("case", bad_sectors())
def test_d10_bad_vanilla_proofs_have_the_command_lines_text(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = made_sector(WINDOW, 5), made_sector(WINDOW, 9, 1)
    monkeypatch.chdir(tmp_path)
    Path("a").write_bytes(first.blob)
    Path("b").write_bytes(bad_sectors()[case])
    Path("statement.json").write_text(json.dumps(window_fields(first, second)))
    assert app.run(["filecoin", "prove", "a", "b", "--statement", "statement.json", "--json"]) == 2
    message = json.loads(capsys.readouterr().out)["error"]["message"]
    assert message.startswith("b: ")
    catalogue = served()
    asked = window_request(first.blob, bad_sectors()[case])
    assert catalogue.route(asked) == Route("w", 1)
    with pytest.raises(FormatError) as caught:
        catalogue.check(asked)
    assert str(caught.value) == f"vanilla_proofs[1]{message.removeprefix('b')}"


def test_an_empty_vanilla_proof() -> None:
    with pytest.raises(FormatError, match=r"vanilla_proofs\[0\]: expected .*, found an empty file"):
        served().check(window_request(b""))


@pytest.fixture
def c1(fixtures: Path) -> bytes:
    return (fixtures / "filecoin" / "c1-2KiB.bincode").read_bytes()


def porep(data: bytes, **more: Field) -> Request:
    fields = {"registered_proof": 5, "sector_size": 2048, **more}
    return request("porep-c2", fields, data)


def checked(asked: Request, proof: RegisteredProof, threads: int) -> Task:
    return task_of(asked, proof, read_vanilla(asked, proof), threads)


def test_d10_bad_c1_have_the_command_lines_text(
    c1: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    proof = SEAL[5]
    bad = {
        "cut": c1[: len(c1) // 2],
        "trailing": c1 + b"\0",
        "r": c1[:-128] + BLS12_381.r.to_bytes(32, "little") + c1[-96:],
        "zero comm_r": c1[:-160] + bytes(32) + c1[-128:],
        "zero comm_d": c1[:-128] + bytes(32) + c1[-96:],
        "zero seed": c1[:-64] + bytes(32) + c1[-32:],
        "cut json": b'{"registered_proof": "StackedDrg2KiBV1_1", "vanilla_proofs": ',
        "other json": b'{"a": 1}',
        "no base64": b'{"SectorNum": 1, "Phase1Out": "####", "SectorSize": 2048}',
        "wrapped noise": b'{"SectorNum": 1, "Phase1Out": "AAAA", "SectorSize": 2048}',
        "noise": b"\xff" * 64,
    }
    for case, data in bad.items():
        Path("c1").write_bytes(data)
        assert app.run(["filecoin", "prove", "c1", "--json"]) == 2, case
        message = json.loads(capsys.readouterr().out)["error"]["message"]
        assert message.startswith("c1: "), message
        with pytest.raises(FormatError) as caught:
            read_vanilla(porep(data), proof)
        assert str(caught.value) == f"vanilla_proof{message.removeprefix('c1')}"
    assert read_vanilla(porep(c1), proof)
    with pytest.raises(
        FormatError,
        match="vanilla_proof: registered_proof: expected StackedDrg2KiBV1, as the request",
    ):
        read_vanilla(porep(c1, registered_proof=0), SEAL[0])


def test_l8_the_wrapper(fixtures: Path) -> None:
    """A real one, with the sector number and the size that must be the request's, and its other forms."""
    folder = fixtures / "filecoin"
    data = (folder / "c1-2KiB.curio.json").read_bytes()
    fields = {"miner_id": 1000, "sector_number": 1}
    statement = checked(porep(data, **fields), SEAL[5], 2).statement
    for name in ("c1-2KiB.json", "c1-2KiB.bincode"):
        bare = (folder / name).read_bytes()
        for asked in (porep(bare, **fields), porep(bare), porep(data, miner_id=1000)):
            assert checked(asked, SEAL[5], 2).statement == statement
        with pytest.raises(UnsatisfiedError, match="vanilla_proof: replica_id: expected"):
            checked(porep(bare, miner_id=1000, sector_number=2), SEAL[5], 2)
    with pytest.raises(UnsatisfiedError, match="vanilla_proof: Phase1Out: replica_id: expected"):
        checked(porep(data, miner_id=1001, sector_number=1), SEAL[5], 2)
    with pytest.raises(FormatError, match="vanilla_proof: SectorNum: expected 8, as the request"):
        read_vanilla(porep(data, miner_id=1000, sector_number=8), SEAL[5])


def test_the_replica_id_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the request's miner and sector; a C1 that does not say its sector is taken at the request's word."""
    made = sealed(SEAL[5])
    assert prover_id(1000) == PROVER
    for number in (SECTOR, None):
        c1 = replace(made, sector_number=number)
        monkeypatch.setattr("cuzk.catalogue.filecoin_requests.read_c1", lambda _, c1=c1: c1)
        fields = {"miner_id": 1000, "sector_number": SECTOR}
        task = checked(porep(b"x", **fields), SEAL[5], 1)
        assert isinstance(task.statement, SealStatement)
        assert task.statement.replica_id == made.replica_id
        checked(porep(b"x"), SEAL[5], 1)
        with pytest.raises(UnsatisfiedError, match="replica_id: expected"):
            checked(porep(b"x", **{**fields, "miner_id": 1001}), SEAL[5], 1)
    with pytest.raises(UnsatisfiedError, match="replica_id: expected"):
        checked(porep(b"x", miner_id=1000), SEAL[5], 1)  # sector 0


# Proofs


@pytest.fixture(scope="module")
def opened() -> Any:
    found = catalogue_of(
        filecoin("w", proof=CIRCUIT, insecure_key=True), parameters=own_files(CIRCUIT)
    ).open("w", "cpu", 2, None)
    yield found
    found.close()


def verifier() -> Verifier:
    (path,) = own_files(CIRCUIT).glob("*.vk")
    return Verifier(read_vk(path), insecure_key=True, threads=2)


def test_a_window_post_is_proved(opened: OpenCircuit) -> None:
    sectors = [made_sector(WINDOW, 5), made_sector(WINDOW, 9, 1)]
    asked = window_request(*(sector.blob for sector in sectors))
    prepared = opened.prepare(asked)
    assert 0.7 * asked.nbytes < prepared.nbytes < 3 * asked.nbytes
    part = opened.prove(prepared, 0)
    whole = opened.finish(prepared, [part])
    stated = tuple(Sector(s.number, s.comm_r) for s in sectors)
    assert verify(verifier(), PostStatement(WINDOW, RANDOMNESS, stated), whole.proof)
    assert (whole.proof, len(whole.proof), whole.public) == (part.proof, 192, b"")
    assert {"witness", "commit", "total"} <= part.milliseconds.keys()
    assert part.milliseconds["total"] >= part.milliseconds["witness"] + part.milliseconds["commit"]
    assert {"witness", "commit", "verify"} <= {name for _, name, _, _ in part.spans}
    assert (part.device, opened.slots(), opened.tier()) == ("cpu", 1, "hot")
    repeated = opened.prepare(window_request(sectors[0].blob))
    with pytest.raises(ProofError, match="failed its verification from public data"):
        opened.finish(repeated, [part])  # another statement's
    with pytest.raises(FormatError, match=r"expected 192 bytes .* found 384"):
        opened.finish(prepared, [part, part])
    with pytest.raises(FormatError, match="partition: expected 0 to 0, found 1"):
        opened.prove(prepared, 1)
    flipped = PartProof(bytes([part.proof[0] ^ 1]) + part.proof[1:], {}, "cpu")
    with pytest.raises(FormatError, match="proof: a: "):
        opened.finish(prepared, [flipped])


def test_vanilla_proofs_that_do_not_hold(opened: OpenCircuit) -> None:
    data = bytearray(made_sector(WINDOW, 5).blob)
    data[-104] ^= 1
    asked = window_request(bytes(data))
    served().check(asked)  # well-formed
    with pytest.raises(UnsatisfiedError, match=r"sector 0 \(number 5\): challenge 9 \(node \d+\)"):
        opened.prepare(asked)
    with pytest.raises(UnsatisfiedError, match="challenged node"):
        opened.prepare(window_request(made_sector(WINDOW, 5).blob, partition_index=1))


def test_a_copy_for_another_process() -> None:
    catalogue = served()
    copy = pickle.loads(pickle.dumps(catalogue))
    assert copy.entries() == catalogue.entries()
    copy.check(window_request(made_sector(WINDOW, 5).blob))


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
