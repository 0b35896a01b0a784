"""docs/cases.md names tests that exist, one line for each case."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
ROW = re.compile(r"^\| ([A-Z][0-9]+) \| (.+) \| (`.+`) \|$")
NETWORK = {"socket", "urllib", "http", "ftplib", "ssl", "requests", "httpx"}


def rows() -> list[tuple[str, list[str]]]:
    lines = (TESTS.parent / "docs" / "cases.md").read_text().splitlines()
    found = [ROW.match(line) for line in lines if re.match(r"\| [A-Z][0-9]", line)]
    return [(row[1], re.findall("`([^`]+)`", row[3])) for row in found if row is not None]


@cache
def names(file: str) -> frozenset[str]:
    tree = ast.parse((TESTS / file).read_text())
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


def test_every_case_is_listed_once() -> None:
    cases = [case for case, _ in rows()]
    groups = "".join(dict.fromkeys(case[0] for case in cases))
    assert groups == "FCVGLEB"
    assert len(cases) == len(set(cases)) == 80
    assert cases == sorted(cases, key=lambda case: (groups.index(case[0]), int(case[1:])))


@pytest.mark.parametrize(("case", "tests"), rows(), ids=[case for case, _ in rows()])
def test_the_tests_of_a_case_exist(case: str, tests: list[str]) -> None:
    assert tests, case
    for test in tests:
        file, _, name = test.partition("::")
        assert name in names(file), f"{case}: {test}"


def test_b5_no_test_but_interop_opens_a_connection() -> None:
    for path in TESTS.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            imported = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                imported = [str(node.module)]
            tops = {name.split(".")[0] for name in imported}
            assert not tops & NETWORK or path.parent.name == "interop", path.name
