import os
import stat
from pathlib import Path

import pytest

from cuzk.cli.outputs import check_outputs, replacing
from cuzk.errors import FormatError


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_old_file_stays_until_the_new_one_is_whole(tmp_path: Path) -> None:
    target = tmp_path / "proof.json"
    target.write_text("old")
    with replacing(target) as temporary:
        temporary.write_text("new")
        assert target.read_text() == "old"
    assert target.read_text() == "new"
    assert names(tmp_path) == ["proof.json"]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_nothing_is_left_after_a_failure(tmp_path: Path, error: type[BaseException]) -> None:
    target = tmp_path / "proof.json"
    target.write_text("old")

    def write() -> None:
        with replacing(target) as temporary:
            temporary.write_text("half")
            raise error

    with pytest.raises(error):
        write()
    assert target.read_text() == "old"
    assert names(tmp_path) == ["proof.json"]


def test_mode_and_symbolic_link_are_kept(tmp_path: Path) -> None:
    target = tmp_path / "real.json"
    target.write_text("old")
    target.chmod(0o640)
    link = tmp_path / "link.json"
    link.symlink_to("real.json")
    with replacing(link) as temporary:
        temporary.write_text("new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


def test_a_device_is_written_not_replaced() -> None:
    with replacing(Path("/dev/null")) as temporary:
        temporary.write_text("gone")
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


def test_refused_before_the_work(tmp_path: Path) -> None:
    key = tmp_path / "key.zkey"
    key.write_text("key")
    proof, public = tmp_path / "proof.json", tmp_path / "public.json"
    check_outputs({"-o": proof, "--public": public}, {"KEY": key})
    os.link(key, tmp_path / "other-name")
    for outputs, words in [
        ({"-o": tmp_path / "none" / "proof.json"}, "does not exist"),
        ({"-o": tmp_path}, "found a directory"),
        ({"-o": key}, "the same file as KEY"),
        ({"-o": tmp_path / "other-name"}, "the same file as KEY"),
        ({"-o": proof, "--public": tmp_path / "." / "proof.json"}, "the same file as -o"),
    ]:
        with pytest.raises(FormatError, match=words):
            check_outputs(outputs, {"KEY": key})
    assert names(tmp_path) == ["key.zkey", "other-name"]


def test_dev_null_may_be_named_twice() -> None:
    null = Path("/dev/null")
    check_outputs({"-o": null, "--public": null}, {})
