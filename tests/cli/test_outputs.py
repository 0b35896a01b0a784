import os
from pathlib import Path

import pytest

from cuzk.cli.outputs import check_outputs
from cuzk.errors import FormatError


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_refused_before_the_work(tmp_path: Path) -> None:
    key = tmp_path / "key.zkey"
    key.write_text("key")
    proof, public = tmp_path / "proof.json", tmp_path / "public.json"
    check_outputs({"-o": proof, "--public": public}, {"KEY": key})
    os.link(key, tmp_path / "other-name")
    dangling = tmp_path / "link.json"
    dangling.symlink_to("none/proof.json")
    for outputs, words in [
        ({"-o": tmp_path / "none" / "proof.json"}, "does not exist"),
        ({"-o": tmp_path}, "found a directory"),
        ({"-o": dangling}, "none does not exist"),
        ({"-o": key}, "the same file as KEY"),
        ({"-o": tmp_path / "other-name"}, "the same file as KEY"),
        ({"-o": proof, "--public": tmp_path / "." / "proof.json"}, "the same file as -o"),
    ]:
        with pytest.raises(FormatError, match=words):
            check_outputs(outputs, {"KEY": key})
    assert names(tmp_path) == ["key.zkey", "link.json", "other-name"]


def test_dev_null_may_be_named_twice() -> None:
    null = Path("/dev/null")
    check_outputs({"-o": null, "--public": null}, {})
