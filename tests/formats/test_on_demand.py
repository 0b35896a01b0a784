"""A file that is read on demand: the bytes of the file, and an error for whatever is not there any more."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from cuzk.errors import FormatError, InternalError
from cuzk.formats.on_demand import on_demand

CONTENT = bytes(range(256)) * 40


@pytest.fixture
def path(tmp_path: Path) -> Path:
    target = tmp_path / "x.zkey"
    target.write_bytes(CONTENT)
    return target


def test_what_is_read_is_what_the_file_holds(path: Path) -> None:
    with on_demand(path, "a key") as source:
        assert (source.name, source.size) == ("x.zkey", len(CONTENT))
        for offset, length in ((0, 4), (7, 5000), (len(CONTENT) - 3, 10), (len(CONTENT) + 5, 4)):
            assert source.at(offset, length).tobytes() == CONTENT[offset : offset + length]
        assert source.words(5, 16).tobytes() == CONTENT[5:21]
        assert not source.at(0, 4).flags.writeable
        with pytest.raises(InternalError, match=r"x\.zkey: .* one at the whole"):
            _ = source.data


def test_a_read_that_comes_in_pieces_is_put_together(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = os.preadv
    monkeypatch.setattr(os, "preadv", lambda file, into, at: whole(file, [into[0][:1000]], at))
    with on_demand(path, "a key") as source:
        assert source.at(3, 4500).tobytes() == CONTENT[3:4503]


def test_bytes_that_are_gone_are_an_error_and_those_before_are_not(path: Path) -> None:
    with on_demand(path, "a key") as source:
        os.truncate(path, 100)
        assert source.at(0, 100).tobytes() == CONTENT[:100]
        with pytest.raises(FormatError) as caught:
            source.at(90, 20)
    assert str(caught.value) == (
        "x.zkey: expected 10240 bytes as when it was opened, found its end at 100: "
        "the file was cut short while it was read"
    )


def test_a_disk_that_fails_is_an_error(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> int:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "preadv", broken)
    with (
        on_demand(path, "a key") as source,
        pytest.raises(FormatError, match=r"^x\.zkey: expected 4 bytes at offset 8, found Input/"),
    ):
        source.at(8, 4)


def test_what_is_no_file_is_refused_as_a_mapped_one_is(path: Path, tmp_path: Path) -> None:
    path.write_bytes(b"")
    for what, found in ((path, "an empty file"), (tmp_path, "a directory"), (tmp_path / "y", "no file")):  # fmt: skip
        with pytest.raises(FormatError, match=f"expected a key, found {found}"), on_demand(what, "a key"):  # fmt: skip
            pass
