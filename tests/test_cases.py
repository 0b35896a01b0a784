"""docs/cases.md names tests that exist, one line for each case."""

import ast
import re
import socket
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
ROW = re.compile(r"^\| ([A-Z]?[0-9]+) \| (.+) \| (`.+`) \|$")
NETWORK = {"socket", "urllib", "http", "ftplib", "ssl", "requests", "httpx"}
FAULTS = 27
"""Of the reference system: those rows have a number alone."""


def rows() -> list[tuple[str, list[str]]]:
    lines = (TESTS.parent / "docs" / "cases.md").read_text().splitlines()
    found = [ROW.match(line) for line in lines if re.match(r"\| [A-Z]?[0-9]", line)]
    return [(row[1], re.findall("`([^`]+)`", row[3])) for row in found if row is not None]


@cache
def names(file: str) -> frozenset[str]:
    tree = ast.parse((TESTS / file).read_text())
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(node.name for node in tree.body if isinstance(node, kinds))


def test_every_case_is_listed_once() -> None:
    cases = [case for case, _ in rows() if not case.isdecimal()]
    groups = "".join(dict.fromkeys(case[0] for case in cases))
    assert groups == "FCVGLDMEB"
    assert len(cases) == len(set(cases)) == 94
    assert cases == sorted(cases, key=lambda case: (groups.index(case[0]), int(case[1:])))


def test_every_fault_is_listed_once() -> None:
    faults = [int(case) for case, _ in rows() if case.isdecimal()]
    assert faults == list(range(1, FAULTS + 1))


@pytest.mark.parametrize(("case", "tests"), rows(), ids=[case for case, _ in rows()])
def test_the_tests_of_a_case_exist(case: str, tests: list[str]) -> None:
    assert tests, case
    for test in tests:
        file, _, name = test.partition("::")
        assert name.startswith("test_"), f"{case}: {test}"
        assert name in names(file), f"{case}: {test}"


def test_b5_no_test_but_interop_connects_to_another_machine() -> None:
    """A documentation network's address; loopback, where services are tested, is none."""
    with socket.socket() as other, pytest.raises(RuntimeError, match=r"connects to 192\.0\.2\.1"):
        other.connect(("192.0.2.1", 9))
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(server.getsockname()).close()


def test_b5_only_tests_of_the_service_and_interop_import_what_connects() -> None:
    for path in TESTS.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            imported = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                imported = [str(node.module)]
            if {name.split(".")[0] for name in imported} & NETWORK:
                of_service = path.parent.name == "server" or path.name.startswith("test_serve")
                assert of_service or path.parent.name == "interop" or path == Path(__file__), path
