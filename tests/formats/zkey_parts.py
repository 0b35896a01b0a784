"""Taking a .zkey apart and putting other bytes into it."""

import struct
from pathlib import Path

import iden3_files as files
import pytest

from cuzk.curves import Curve
from cuzk.errors import FormatError, InsecureKeyError
from cuzk.formats.iden3.zkey import read_zkey, read_zkey_header
from cuzk.groth16 import ProvingKey
from cuzk.vectors import Points


def vectors(key: ProvingKey) -> dict[int, Points]:
    return {3: key.vk.ic, 5: key.a.points, 6: key.b_g1.points, 7: key.b_g2.points, 8: key.l.points, 9: key.h}  # fmt: skip


def section(data: bytes, number: int) -> bytes:
    return dict(files.take_apart(data))[number]


def with_bytes(data: bytes, number: int, at: int, new: bytes) -> bytes:
    content = section(data, number)
    return files.with_section(data, number, content[:at] + new + content[at + len(new) :])


def refused(data: bytes, message: str, error: type[FormatError] = FormatError) -> None:
    for read in (read_zkey,) if error is InsecureKeyError else (read_zkey, read_zkey_header):
        with pytest.raises(error) as caught:
            read(data)
        assert str(caught.value).startswith(f"<bytes>: {message}")
        assert "\n" not in str(caught.value)


def counts(data: bytes, curve: Curve, *numbers: int) -> bytes:
    return with_bytes(data, 2, files.sizes(curve)[0] + 40, struct.pack("<III", *numbers))


def sparse_file(path: Path, sections: list[tuple[int, bytes | int]]) -> None:
    """A file with holes: an integer in place of content is so many zero bytes."""
    with path.open("wb") as file:
        file.write(b"zkey" + struct.pack("<II", 1, len(sections)))
        for number, content in sections:
            length = content if isinstance(content, int) else len(content)
            file.write(struct.pack("<IQ", number, length))
            if isinstance(content, int):
                file.seek(content, 1)
            else:
                file.write(content)
        file.truncate(file.tell())
