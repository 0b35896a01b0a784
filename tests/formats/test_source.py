import io
import mmap
import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from cuzk.errors import CuzkError, FormatError
from cuzk.formats.source import Source, printable, write_atomically, write_together

CONTENT = bytes(range(200)) * 3


@pytest.fixture
def path(tmp_path: Path) -> Path:
    target = tmp_path / "x.zkey"
    target.write_bytes(CONTENT)
    return target


def kinds_of_input(path: Path) -> dict[str, object]:
    with path.open("rb") as file:
        mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    return {
        "path": path,
        "str": str(path),
        "bytes": CONTENT,
        "bytearray": bytearray(CONTENT),
        "memoryview": memoryview(CONTENT),
        "mmap": mapping,
        "uint8": np.frombuffer(CONTENT, dtype=np.uint8),
        "uint64": np.frombuffer(CONTENT, dtype=np.uint64),
        "BytesIO": io.BytesIO(CONTENT),
    }


def test_e10_every_kind_of_input_is_read_only_and_the_same(path: Path) -> None:
    for name, what in kinds_of_input(path).items():
        source = Source.open(what)  # type: ignore[arg-type]
        assert source.data.tobytes() == CONTENT, name
        assert source.size == 600
        assert source.data.dtype == np.uint8
        assert not source.data.flags.writeable, name
        assert source.name == ("x.zkey" if name in ("path", "str") else "<bytes>")


def test_e10_buffers_and_files_are_views_not_copies(path: Path) -> None:
    for name, what in kinds_of_input(path).items():
        if name in ("path", "str"):
            assert Source.open(what).mapping is not None  # type: ignore[arg-type]
            continue
        view = what.getbuffer() if isinstance(what, io.BytesIO) else memoryview(what)  # type: ignore[arg-type]
        address = np.frombuffer(view, dtype=np.uint8).ctypes.data
        assert Source.open(what).data.ctypes.data == address, name  # type: ignore[arg-type]


@pytest.mark.parametrize("buffering", [0, -1])
def test_e10_an_open_file_is_mapped_from_its_position(path: Path, buffering: int) -> None:
    with path.open("rb", buffering=buffering) as file:
        file.seek(8)
        source = Source.open(file)
    assert source.mapping is not None
    assert source.name == "x.zkey"
    assert source.data.tobytes() == CONTENT[8:]
    source.forget(0, source.size)
    assert source.data.tobytes() == CONTENT[8:]


def test_e10_a_file_just_written_is_read_whole(tmp_path: Path) -> None:
    with (tmp_path / "new").open("w+b") as file:
        file.write(CONTENT)
        file.seek(0)
        assert Source.open(file).data.tobytes() == CONTENT


def test_e10_streams_without_a_file_are_read(path: Path) -> None:
    import gzip

    packed = path.with_suffix(".gz")
    packed.write_bytes(gzip.compress(CONTENT))
    with gzip.open(packed, "rb") as file:
        assert Source.open(file).data.tobytes() == CONTENT  # type: ignore[arg-type]
    reader, writer = os.pipe()
    os.write(writer, CONTENT)
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        assert Source.open(file).data.tobytes() == CONTENT


def test_a_source_opens_as_itself() -> None:
    source = Source.open(CONTENT)
    assert Source.open(source) is source


@pytest.mark.parametrize("offset", range(9))
def test_words_are_aligned_whatever_the_offset(path: Path, offset: int) -> None:
    for what in (path, b"\0" * 3 + CONTENT):
        source = Source.open(what)
        words = source.words(offset, 64)
        assert words.ctypes.data % 8 == 0
        assert not words.flags.writeable
        assert words.tobytes() == source.data[offset : offset + 64].tobytes()
    inside = Source.open(path)
    assert np.shares_memory(inside.words(offset, 64), inside.data) == (offset % 8 == 0)


def test_words_of_many_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cuzk.formats.source.COPY_BYTES", 2 * mmap.PAGESIZE)
    content = np.random.default_rng(1).bytes(9 * mmap.PAGESIZE)
    (tmp_path / "x").write_bytes(content)
    source = Source.open(tmp_path / "x")
    assert source.words(12, 8 * mmap.PAGESIZE).tobytes() == content[12 : 12 + 8 * mmap.PAGESIZE]
    assert source.data.tobytes() == content


def one_line(error: pytest.ExceptionInfo[CuzkError]) -> str:
    text = str(error.value)
    assert "\n" not in text
    return text


def test_f19_nothing_to_read_is_said_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "empty.zkey").touch()
    os.mkfifo(tmp_path / "pipe.zkey")
    cases = {
        "empty.zkey": "found an empty file",
        "pipe.zkey": "found a pipe (save it to a file first)",
        "missing.zkey": "found no file of that name",
        "": "found a directory",
    }
    for name, found in cases.items():
        with pytest.raises(FormatError) as error:
            Source.open(tmp_path / name, "a .zkey file")
        assert one_line(error) == f"{tmp_path / name}: expected a .zkey file, {found}"


@pytest.mark.parametrize("what", ["/dev/zero", "/dev/null", Path("/dev")])
def test_f19_devices_are_refused_unopened(what: str) -> None:
    with pytest.raises(FormatError, match=r"found a d(evice|irectory)$"):
        Source.open(what)


@pytest.mark.parametrize("what", ["", "a\0b", "a\nb", "x" * 5000, "\udcff", "/dev/null/x"])
def test_f19_names_that_are_none(what: str) -> None:
    with pytest.raises(FormatError) as error:
        Source.open(what)
    assert one_line(error).isprintable()


@pytest.mark.parametrize("what", [3, None, [1, 2], object(), b"", bytearray(), memoryview(b"")[:0],
                                  np.arange(12).reshape(3, 4)[:, ::2], io.BytesIO(), io.StringIO("text")])  # fmt: skip
def test_what_is_no_input_is_refused(what: object) -> None:
    with pytest.raises(FormatError) as error:
        Source.open(what)  # type: ignore[arg-type]
    one_line(error)


def test_l14_a_file_that_may_not_be_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", refuse)
    with pytest.raises(
        FormatError, match=r"x\.zkey: expected a file, found one that may not be read"
    ):
        Source.open(path)


def test_a_file_closed_or_open_for_writing_only(path: Path) -> None:
    with path.open("rb") as file:
        pass
    with pytest.raises(FormatError, match="closed file"):
        Source.open(file)
    with path.with_suffix(".new").open("wb") as output:
        output.write(b"x")
        with pytest.raises(FormatError):
            Source.open(output)


def test_printable() -> None:
    assert printable("ключ.zkey") == "ключ.zkey"
    assert printable("a\nb\x1b[0m\udcff") == "a\\nb\\x1b[0m\\udcff"


# writing


def folder(path: Path) -> list[str]:
    return sorted(entry.name for entry in path.iterdir())


def test_writes_all_chunks(tmp_path: Path) -> None:
    write_atomically(tmp_path / "x", [b"ab", bytearray(b"cd"), memoryview(b"ef")])
    assert (tmp_path / "x").read_bytes() == b"abcdef"
    assert folder(tmp_path) == ["x"]


def test_e2_a_failure_half_way_leaves_the_old_file(tmp_path: Path) -> None:
    def chunks() -> Iterator[bytes]:
        yield b"new"
        raise KeyboardInterrupt

    for name in ("old", "none"):
        (tmp_path / "old").write_bytes(b"old")
        with pytest.raises(KeyboardInterrupt):
            write_atomically(tmp_path / name, chunks())
        assert folder(tmp_path) == ["old"]
        assert (tmp_path / "old").read_bytes() == b"old"


@pytest.mark.parametrize("fault", [KeyboardInterrupt, OSError(28, "No space left on device")])
def test_e2_two_files_appear_together_or_not_at_all(
    tmp_path: Path, fault: BaseException | type[BaseException]
) -> None:
    def chunks() -> Iterator[bytes]:
        yield b"new"
        assert (tmp_path / "a").read_bytes() == b"old"
        raise fault

    (tmp_path / "a").write_bytes(b"old")
    with pytest.raises((KeyboardInterrupt, CuzkError)):
        write_together({tmp_path / "a": [b"new"], tmp_path / "b": chunks()})
    assert folder(tmp_path) == ["a"]
    assert (tmp_path / "a").read_bytes() == b"old"
    write_together({tmp_path / "a": [b"1"], tmp_path / "b": [b"2"]})
    assert folder(tmp_path) == ["a", "b"]
    assert (tmp_path / "a").read_bytes() + (tmp_path / "b").read_bytes() == b"12"


def test_a_full_disk_is_one_line(tmp_path: Path) -> None:
    def chunks() -> Iterator[bytes]:
        yield b"new"
        raise OSError(28, "No space left on device")

    with pytest.raises(CuzkError, match=r"cannot be written: No space left on device$"):
        write_atomically(tmp_path / "x", chunks())
    assert folder(tmp_path) == []


def test_modes(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_atomically(tmp_path / "x", [b"1"])
        assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == 0o640
        (tmp_path / "x").chmod(0o604)
        write_atomically(tmp_path / "x", [b"2"])
        assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == 0o604
    finally:
        os.umask(before)


def test_symlinks_are_followed(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "x").write_bytes(b"old")
    (tmp_path / "link").symlink_to("real/x")
    (tmp_path / "dangling").symlink_to("real/y")
    write_atomically(tmp_path / "link", [b"new"])
    write_atomically(tmp_path / "dangling", [b"new"])
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real" / "x").read_bytes() == b"new"
    assert folder(tmp_path / "real") == ["x", "y"]


@pytest.mark.parametrize("name", [".", "missing/x", "x/y", "n" * 300, "a\0b"])
def test_targets_that_cannot_be(tmp_path: Path, name: str) -> None:
    (tmp_path / "x").write_bytes(b"old")
    with pytest.raises(CuzkError, match="cannot be written") as error:
        write_atomically(f"{tmp_path}/{name}", [b"new"])
    one_line(error)
    assert folder(tmp_path) == ["x"]
    assert (tmp_path / "x").read_bytes() == b"old"


def test_what_is_no_regular_file_is_written_in_place(tmp_path: Path) -> None:
    write_atomically("/dev/null", [b"gone"])
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)  # noqa: PTH116
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    write_atomically(pipe, [b"through"])
    reader.join(10)
    assert read == [b"through"]
    assert folder(tmp_path) == ["pipe"]
