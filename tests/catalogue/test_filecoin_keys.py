"""Keys of Filecoin's circuits: faults in their files, and which are trusted."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from made_posts import made_sector
from own_files import own_files, params_file
from served import catalogue_of, filecoin, request
from window_posts import CIRCUIT, WINDOW, served, window_fields

import cuzk.cli.app as app
from cuzk.errors import (
    CuzkError,
    FormatError,
    InsecureKeyError,
    NotReady,
)
from cuzk.filecoin.parameters import parameters_named

NODE = bytes(range(1, 32)) + b"\0"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Nothing of the user's is read or written."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("FIL_PROOFS_PARAMETER_CACHE", raising=False)
    return tmp_path


STEM = parameters_named(CIRCUIT).stem


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
