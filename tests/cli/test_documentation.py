"""What the documentation tells to type is there: commands, options, settings, variables (fault 27: pages that were stale)."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from cuzk.cli.app import MODULES, cuzk_group
from cuzk.config import CircuitSettings, Settings

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("examples/*.md"),
                *ROOT.glob("examples/cuzk.*")])  # fmt: skip
TABLES = {
    name: set(getattr(field.annotation, "model_fields", CircuitSettings.model_fields))
    for name, field in Settings.model_fields.items()
} | {"circuit": set(CircuitSettings.model_fields)}


def typed(page: Path) -> Iterator[tuple[bool, str]]:
    """Command lines: whole ones from blocks of a shell's lines, beginnings from sentences."""
    text = page.read_text()
    for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL):
        for line in block.replace("\\\n", " ").splitlines():
            if line.lstrip().startswith("cuzk "):
                yield True, re.split(r"\s+#", line.strip())[0]
    for sentence in re.findall(r"`(cuzk [a-z][^`]*)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL)):  # fmt: skip
        yield False, " ".join(sentence.split())
    for line in re.findall(r"^ExecStart=\S*/(cuzk .*)$", text, re.MULTILINE):
        yield True, line


LINES = [(page.name, whole, line) for page in PAGES for whole, line in typed(page)]


def commands(words: list[str]) -> Iterator[tuple[click.Command, list[str]]]:
    """What they call, with the rest of the words; "msm|ntt" are two."""
    context = click.Context(cuzk_group)
    for first in words[1].split("|"):
        command, rest = cuzk_group.get_command(context, first), words[2:]
        assert command is not None, first
        if isinstance(command, click.Group) and rest:
            for second in rest[0].split("|"):
                inner = command.get_command(context, second)
                assert inner is not None, second
                yield inner, rest[1:]
        else:
            yield command, rest


@pytest.mark.parametrize(("page", "whole", "line"), LINES, ids=[f"{p}:{t}" for p, _, t in LINES])
def test_27_commands_of_the_documentation_can_be_typed(page: str, whole: bool, line: str) -> None:
    for command, rest in commands(shlex.split(line)):
        known = {name for parameter in command.params for name in parameter.opts} | {"--help"}
        given = {word.split("=")[0] for word in rest if re.match(r"--?[a-z]", word)}
        assert given <= known, f"{page}: {line}"
        if whole:
            command.make_context(command.name, rest)


def test_27_examples_of_the_help_can_be_typed() -> None:
    context, found = click.Context(cuzk_group), 0
    for name in MODULES:
        command = cuzk_group.get_command(context, name)
        assert command is not None
        for line in re.findall(r"^ +(cuzk .*)$", command.help or "", re.MULTILINE):
            ((called, rest),) = commands(shlex.split(line))
            assert called is command
            called.make_context(name, rest)
            found += 1
    assert found > 4


def test_27_every_command_is_in_the_documentation() -> None:
    told = {name for _, _, line in LINES for name in shlex.split(line)[1].split("|")}
    assert told <= set(MODULES)
    assert set(MODULES) - told == set()


def test_27_settings_of_the_documentation_exist() -> None:
    found = 0
    for page in PAGES:
        code = re.findall(r"`([^`\n]+)`", page.read_text())
        for table, key in re.findall(rf"(?<![\w./])({'|'.join(TABLES)})\.([a-z_]+)\b(?!\()", " ".join(code)):  # fmt: skip
            if key not in ("py", "zkey", "r1cs"):  # files
                assert key in TABLES[table], (page.name, table, key)
                found += 1
    assert found > 10


def test_27_settings_files_of_the_documentation_are_read() -> None:
    found = 0
    for page in PAGES:
        for block in re.findall(r"```toml\n(.*?)```", page.read_text(), re.DOTALL):
            for table, keys in tomllib.loads(block).items():
                rows = keys if isinstance(keys, list) else [keys]
                assert set().union(*rows) <= TABLES[table], (page.name, table)
                found += 1
    assert found


def test_27_variables_of_the_documentation_are_read() -> None:
    sources = [*(ROOT / "src").rglob("*.py"), *(ROOT / "tests").rglob("*.py"), *(ROOT / "bench").rglob("*.py")]  # fmt: skip
    code = "\n".join(path.read_text() for path in sources)
    for page in PAGES:
        for name in set(re.findall(r"\bCUZK_[A-Z_]+\b", page.read_text())):
            assert f'"{name}"' in code, f"{page.name}: {name}"
