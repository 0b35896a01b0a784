"""Names, identifiers and digests against Filecoin's parameters.json; files that are there, wrong or missing."""

from __future__ import annotations

import json
import os
from hashlib import blake2b, sha256
from pathlib import Path
from typing import Any

import pytest

from cuzk.errors import FormatError
from cuzk.filecoin import digests, parameters
from cuzk.filecoin.digests import DigestCache, default_folder
from cuzk.filecoin.parameters import DIGESTS, Parameters
from cuzk.filecoin.registered import POST, SEAL, UPDATE, Kind
from cuzk.filecoin.shapes import PUBLISHED, SHAPES

Published = dict[str, dict[str, Any]]
EVERY = [Parameters(kind, SHAPES[size]) for kind in Kind for size in PUBLISHED]
WINDOW = Parameters(Kind.WINDOW, SHAPES["2KiB"])


@pytest.fixture(scope="module")
def published(fixtures: Path) -> Published:
    return dict(json.loads((fixtures / "filecoin" / "parameters.json").read_bytes()))


@pytest.mark.parametrize("files", EVERY, ids=lambda f: str(f.circuit))
def test_published_names_and_digests(files: Parameters, published: Published) -> None:
    for suffix in ("params", "vk"):
        entry = published[f"{files.stem}.{suffix}"]
        assert files.digest(suffix) == entry["digest"]
        assert files.shape.sector_bytes == entry["sector_size"]


def test_nothing_published_is_missing(published: Published) -> None:
    """But for the SnapDeals circuit with a Poseidon tree D, which is not in use."""
    ours = {f"{files.stem}.{suffix}" for files in EVERY for suffix in ("params", "vk")}
    assert {name for name in published if "update-poseidon" not in name} == ours
    assert set(DIGESTS) == {files.circuit for files in EVERY}
    assert {proof.circuit for proof in (*SEAL, *POST, *UPDATE)} == set(DIGESTS)


def test_a_name_by_hand() -> None:
    files = Parameters(Kind.WINNING, SHAPES["32GiB"])
    text = (
        "FallbackPoSt::PublicParams{sector_size: 34359738368, challenge_count: 1, sector_count: 66}"
    )
    assert files.identifier == text
    prefix = "v28-proof-of-spacetime-fallback-merkletree-poseidon_hasher-8-8-0"
    assert files.stem == f"{prefix}-{sha256(text.encode()).hexdigest()}"
    assert files.stem.split("-")[-1].startswith("559e581f")
    assert parameters.DEFAULT_FOLDER == "/var/tmp/filecoin-proof-parameters"


def test_a_real_key_has_the_digest_that_filecoin_lists_it_by(
    fixtures: Path, tmp_path: Path
) -> None:
    """The v27 key of 32 GiB seals, taken out of a file of proofs."""
    data = (fixtures / "filecoin" / "seal32_x10.prf").read_bytes()
    key = tmp_path / "v27.vk"
    key.write_bytes(data[16 : 16 + 868 + 96 * 328])
    assert DigestCache(None).digest(key) == "7a139d82b8a02e35279d657e197f5c1f"


# Finding files


def test_a_file_that_is_there(tmp_path: Path) -> None:
    path = tmp_path / f"{WINDOW.stem}.params"
    path.write_bytes(b"x")
    assert WINDOW.find(tmp_path, "params") == path


def test_l14_missing_files_are_named_with_the_way_to_get_them(tmp_path: Path) -> None:
    files = Parameters(Kind.POREP, SHAPES["32GiB"])
    with pytest.raises(FormatError) as error:
        files.find(tmp_path, "vk")
    message = str(error.value)
    assert message.startswith(f"{tmp_path / files.stem}.vk: expected the .vk file of porep-32GiB, ")
    assert "found no such file: fetch it with `lotus fetch-params 32GiB`" in message
    assert "`curio fetch-params 32GiB`" in message
    assert "FIL_PROOFS_PARAMETER_CACHE" in message
    assert "\n" not in message
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(FormatError, match="found no such directory"):
        files.find(tmp_path / "nowhere", "params")


def test_l1_an_empty_file_and_a_directory_are_missing_too(tmp_path: Path) -> None:
    path = tmp_path / f"{WINDOW.stem}.params"
    path.touch()
    with pytest.raises(FormatError, match="found an empty one: fetch it"):
        WINDOW.find(tmp_path, "params")
    path.unlink()
    path.mkdir()
    with pytest.raises(FormatError, match="found no file of that name, but something else"):
        WINDOW.find(tmp_path, "params")


def test_sizes_without_published_parameters(tmp_path: Path) -> None:
    files = Parameters(Kind.POREP, SHAPES["16KiB"])
    with pytest.raises(FormatError, match=r"found no such file: make a key of your own$"):
        files.find(tmp_path, "params")
    with pytest.raises(
        FormatError, match="porep-16KiB: expected a circuit with published parameters"
    ):
        files.digest("vk")


# Digests


@pytest.fixture
def key(tmp_path: Path) -> Path:
    """A file that last changed an hour ago, as far as anybody can tell."""
    path = tmp_path / "key.params"
    path.write_bytes(b"a key of some length")
    return path


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every file counts as old."""
    monkeypatch.setattr(digests, "SETTLED_SECONDS", -3600)


def digest_of(data: bytes) -> str:
    return blake2b(data).hexdigest()[:32]


@pytest.mark.usefixtures("settled")
def test_a_digest_is_made_once(key: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = DigestCache(tmp_path / "digests")
    expected = digest_of(key.read_bytes())
    assert cache.digest(key) == expected
    (entry,) = (tmp_path / "digests").iterdir()
    stored = json.loads(entry.read_text())
    assert (stored["path"], stored["digest"], stored["size"]) == (str(key), expected, 20)
    monkeypatch.setattr(digests, "key_digest", lambda _: pytest.fail("hashed again"))
    link = tmp_path / "link"
    link.symlink_to(key)
    assert cache.digest(key) == cache.digest(link) == expected


@pytest.mark.usefixtures("settled")
def test_l2_a_changed_file_is_hashed_again(key: Path, tmp_path: Path) -> None:
    cache = DigestCache(tmp_path / "digests")
    cache.digest(key)
    before = key.stat()
    changed = b"A" + key.read_bytes()[1:]
    while key.stat().st_ctime_ns == before.st_ctime_ns:  # until the file system's clock went on
        key.write_bytes(changed)
        os.utime(key, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (key.stat().st_size, key.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    assert cache.digest(key) == digest_of(changed)
    other = tmp_path / "other"
    other.write_bytes(b"another inode, equal size")
    other.replace(key)
    assert cache.digest(key) == digest_of(b"another inode, equal size")


@pytest.mark.usefixtures("settled")
@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b'{"digest": 5}', b"\xff"])
def test_a_damaged_entry_counts_for_nothing(key: Path, tmp_path: Path, content: bytes) -> None:
    cache = DigestCache(tmp_path / "digests")
    expected = cache.digest(key)
    (entry,) = (tmp_path / "digests").iterdir()
    entry.write_bytes(content)
    assert cache.digest(key) == expected
    assert json.loads(entry.read_text())["digest"] == expected


def test_a_file_just_written_is_not_remembered(
    key: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long the machine stands still after that."""
    monkeypatch.setattr(digests, "SETTLED_SECONDS", 3600)
    assert DigestCache(tmp_path / "digests").digest(key) == digest_of(key.read_bytes())
    assert not (tmp_path / "digests").exists()


@pytest.mark.usefixtures("settled")
def test_without_a_place_to_remember(key: Path, tmp_path: Path) -> None:
    blocked = tmp_path / "blocked"
    blocked.write_bytes(b"a file where the folder would be")
    for folder in (None, blocked):
        assert DigestCache(folder).digest(key) == digest_of(key.read_bytes())


def test_l2_a_flipped_byte_is_refused_with_both_digests(tmp_path: Path) -> None:
    path = tmp_path / f"{WINDOW.stem}.vk"
    path.write_bytes(bytes(3076))
    found = digest_of(bytes(3076))
    message = f"expected the digest {WINDOW.digest('vk')} .* of window-2KiB, found {found}"
    with pytest.raises(FormatError, match=message):
        WINDOW.check(path, "vk", DigestCache(None))


def test_a_file_with_the_published_digest_is_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "key.vk"
    path.write_bytes(b"published")
    expected = ("0" * 32, digest_of(b"published"))
    monkeypatch.setitem(DIGESTS, "window-2KiB", expected)
    WINDOW.check(path, "vk", DigestCache(None))
    with pytest.raises(FormatError, match="expected the digest 0000"):
        WINDOW.check(path, "params", DigestCache(None))


def test_what_cannot_be_hashed(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="expected a parameter file, found No such file"):
        DigestCache(None).digest(tmp_path / "missing.params")
    with pytest.raises(FormatError, match="expected a parameter file, found a directory"):
        DigestCache(None).digest(tmp_path)


def test_the_users_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_folder() == tmp_path / ".cache" / "cuzk" / "digests"
