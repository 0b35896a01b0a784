"""The rules that keep the code in order: who imports whom, lengths, the public names, the environment."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import cuzk
from cuzk import _core

SOURCE = Path(cuzk.__file__).resolve().parent
NATIVE = SOURCE / "native"

RANKS = {
    "errors": 0,
    "curves": 1,
    "timeline": 1,
    "trace": 1,
    "config": 1,
    "constants": 2,
    "vectors": 2,
    "r1cs": 2,
    "membership": 2,
    "groth16": 2,
    "circuit": 2,
    "formats": 3,
    "backends": 3,
    "setup": 3,
    "prover": 4,
    "verifier": 4,
    "load": 4,
    "primitives": 4,
    "engine": 5,
    "filecoin": 5,
    "bench": 6,
    "catalogue": 6,
    "doctor": 6,
    "inspect": 6,
    "server": 6,
    "cli": 7,
    "__main__": 7,
}
OUTSIDE = {0: set(), 1: set(), 2: {"numpy"}, 3: {"numpy"}, 4: {"numpy"}, 5: {"numpy"}, 6: {"numpy"}, 7: {"numpy", "click", "rich"}}  # fmt: skip
OUTSIDE_OF = {  # packages of one subject
    "config": {"pydantic", "pydantic_core"},
    "engine": {"psutil"},
    "server": {"google", "grpc", "grpclib", "h2", "prometheus_client", "starlette", "uvicorn"},
}
SERVER = {"engine", "server", "config", "errors"}  # what the server knows of the project
NATIVE_FROM = 3  # the lowest rank that may import cuzk._core
CUDA = {"backends.cuda.device", "backends.cuda.kernels"}  # may import cuda.bindings, when called
BELOW_MACHINE = {
    "device",
    "cuda_machine",
    "card",
    "clock",
    "driver",
    "staging",
    "hostring",
    "pins",
    "stream",
    "queues",
    "kernels",
    "cache",
    "occupancy",
}  # of backends/cuda
KNOW_GPUS = {"backends", "doctor", "bench"}  # may import backends.cuda at their top
NATIVE_TOO = {"membership"}  # and what the readers and the verifier share
ENVIRONMENT = {"os.environ", "os.getenv", "os.environb", "os.putenv"}

MODULES = sorted(SOURCE.rglob("*.py"))
NATIVE_FILES = sorted(path for path in NATIVE.rglob("*") if path.is_file())


def dotted(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def rank(module: str) -> int:
    top = module.split(".")[0]
    assert top in RANKS, f"{top}: give the new module a rank here and in ARCHITECTURE.md"
    return RANKS[top]


def imports(path: Path) -> Iterator[str]:
    """Absolute names of what a file imports, wherever in it, type-only imports included."""
    for node in ast.walk(ast.parse(path.read_text(), str(path))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            if node.module == "cuzk":
                yield from (f"cuzk.{alias.name}" for alias in node.names)
            else:
                yield str(node.module)


@pytest.mark.parametrize("path", MODULES, ids=dotted)
def test_imports_go_one_way(path: Path) -> None:
    module = dotted(path)
    if module == "":
        return  # the public names: read below, imported by nobody
    own = rank(module)
    for name in imports(path):
        top = name.split(".")[0]
        if name == "cuzk.__version__" or (name == "cuzk" and own >= 6):
            continue
        if name == "cuzk._core":
            assert own >= NATIVE_FROM or module in NATIVE_TOO, f"{module} imports the native core"
        elif top == "cuzk":
            target = name.removeprefix("cuzk.")
            theirs = rank(target)
            family = target.split(".")[0] == module.split(".")[0]
            same_level = own == theirs and (own != 3 or family)
            assert theirs < own or same_level, f"{module} (rank {own}) imports {target} ({theirs})"
        elif top not in sys.stdlib_module_names:
            allowed = set() if module == "constants" else OUTSIDE[own]
            allowed = allowed | OUTSIDE_OF.get(module.split(".")[0], set())
            allowed = allowed | {"cuda"} if module in CUDA else allowed
            assert top in allowed, f"{module} (rank {own}) imports {top}"


def test_engine_and_server_know_jobs_and_no_proofs() -> None:
    """The engine nothing but errors of what is below it, the server nothing but the engine and settings."""
    for package, known in (("engine", {"engine", "errors"}), ("server", SERVER)):
        for path in (SOURCE / package).rglob("*.py"):
            theirs = {name.split(".")[1] for name in imports(path) if name.startswith("cuzk.")}
            assert theirs - {"__version__"} <= known, f"{dotted(path)} imports {theirs - known}"


def test_the_network_is_above_everything_but_the_command_line() -> None:
    for path in MODULES:
        own = dotted(path).split(".")[0]
        theirs = {name.split(".")[1] for name in imports(path) if name.startswith("cuzk.")}
        assert own in {"server", "cli"} or "server" not in theirs, dotted(path)
        assert own != "filecoin" or "engine" not in theirs, dotted(path)


def test_the_cuda_backend_knows_a_machine_and_no_driver() -> None:
    """So that all of it but a few modules runs on the emulator."""
    package = "cuzk.backends.cuda"
    below = {f"{package}.{name}" for name in BELOW_MACHINE}
    for path in (SOURCE / "backends" / "cuda").glob("*.py"):
        if path.stem in BELOW_MACHINE:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom):
                names = {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
                assert not names & below, f"{path.name}: line {node.lineno}"


def test_the_table_of_the_cuda_backend_is_complete_and_true() -> None:
    text = (Path(__file__).resolve().parents[1] / "ARCHITECTURE.md").read_text()
    table = text.split("## The CUDA backend")[1].split("```")[1]
    rows = [
        re.match(r" *([a-z_0-9]+(?:, [a-z_0-9]+)*)(?:  |$)", line) for line in table.splitlines()
    ]
    named = [name for row in rows if row for name in row[1].split(", ")]
    assert sorted(named) == sorted(p.stem for p in (SOURCE / "backends" / "cuda").glob("*.py"))
    sources = set(re.findall(r"[a-z_0-9]+\.(?:cu|hpp)\b", table))
    assert sources <= {path.name for path in (NATIVE / "gpu").iterdir()}


def test_the_table_of_the_service_is_complete_and_true() -> None:
    text = (Path(__file__).resolve().parents[1] / "ARCHITECTURE.md").read_text()
    tables = text.split("## The service")[1].split("```")[1::2]
    table = next(table for table in tables if "\nengine/ " in table)
    named: dict[str, list[str]] = {}
    for line in table.splitlines():
        if heading := re.match(r"([a-z]+)/ ", line):
            modules = named.setdefault(heading[1], ["__init__"])
        elif row := re.match(r" +([a-z_0-9]+(?:, [a-z_0-9]+)*)  ", line):
            modules += row[1].split(", ")
    assert set(named) == {"engine", "server", "catalogue", "config"}
    for package, modules in named.items():
        assert sorted(modules) == sorted(path.stem for path in (SOURCE / package).glob("*.py"))
    for name in re.findall(r"  ([a-z_]+\.[a-z]+)$", table, re.MULTILINE):
        assert (SOURCE / "server" / name).is_file()


@pytest.mark.parametrize("path", MODULES, ids=dotted)
def test_gpus_are_imported_when_one_is_asked_for(path: Path) -> None:
    knows = dotted(path).split(".")[0] in KNOW_GPUS
    for node in ast.parse(path.read_text()).body:
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}." for alias in node.names]
        for name in names:
            assert name.split(".")[0] != "cuda", f"line {node.lineno}"
            assert knows or not name.startswith("cuzk.backends.cuda."), f"line {node.lineno}"


def test_formats_know_only_their_own_family() -> None:
    """Readers of iden3, bellman and snarkjs files share bytes and points, not each other."""
    shared = {"source", "points", "json_text"}
    for path in (SOURCE / "formats").rglob("*.py"):
        own = dotted(path).split(".")[1:2]
        for name in imports(path):
            parts = name.split(".")
            if parts[:2] == ["cuzk", "formats"] and len(parts) > 2:
                assert parts[2] in shared or [parts[2]] == own, f"{path.name} imports {name}"


@pytest.mark.parametrize("path", MODULES, ids=dotted)
def test_files_and_functions_stay_short(path: Path) -> None:
    text = path.read_text()
    assert len(text.splitlines()) <= 450, "split it"
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            length = (node.end_lineno or 0) - node.lineno + 1
            assert length <= 60, f"{node.name} has {length} lines"


@pytest.mark.parametrize("path", NATIVE_FILES, ids=lambda p: p.name)
def test_native_files_stay_short(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 600, "split it"


def test_native_types_have_one_name_each() -> None:
    """Areas share a namespace: of two types of one name, what a linker keeps of one serves the other."""
    where: dict[str, Path] = {}
    for path in NATIVE.glob("*.hpp"):
        for name in re.findall(r"^(?:struct|class) (\w+)[^;]*?\{", path.read_text(), re.MULTILINE):
            other = where.setdefault(name, path)
            assert other == path, f"{name}: {path.name} and {other.name}"
    assert len(where) > 50


@pytest.mark.parametrize("path", MODULES, ids=dotted)
def test_only_the_command_line_reads_the_environment(path: Path) -> None:
    if dotted(path).split(".")[0] == "cli":
        return
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute):
            assert ast.unparse(node) not in ENVIRONMENT, f"line {node.lineno}"
        if isinstance(node, ast.ImportFrom) and node.module == "os":
            assert not {a.name for a in node.names} & {"environ", "getenv"}, f"line {node.lineno}"


@pytest.mark.parametrize("path", MODULES, ids=dotted)
def test_no_assert_and_no_bare_except(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        assert not isinstance(node, ast.Assert), f"line {node.lineno}: python -O drops it"
        if isinstance(node, ast.ExceptHandler):
            assert node.type is not None, f"line {node.lineno}"


def test_no_vague_names() -> None:
    vague = {"utils", "common", "helpers", "manager", "base", "misc"}
    for path in [*MODULES, *NATIVE_FILES]:
        assert not vague & set(path.relative_to(SOURCE).with_suffix("").parts)


def test_public_names() -> None:
    assert set(cuzk.__all__) == {
        "BLS12_381", "BN254", "Circuit", "CuzkError", "Evaluations", "Proof", "Prover", "ProvingKey",
        "Report", "Result", "VerifyingKey", "load_circuit", "load_key", "load_proof", "load_public",
        "load_verifying_key", "load_witness", "msm", "ntt", "prepare_key", "verify", "verify_batch",
    }  # fmt: skip
    for name in cuzk.__all__:
        assert not isinstance(getattr(cuzk, name), type(sys)), f"{name} is a module"


def test_stub_names_the_extension() -> None:
    stub = ast.parse((SOURCE / "_core.pyi").read_text())
    names = {node.name for node in stub.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    assert names == {name for name in dir(_core) if not name.startswith("_")}


def test_import_is_light() -> None:
    """`import cuzk` loads neither numpy nor the native core."""
    code = "import sys, cuzk; print('numpy' in sys.modules, 'cuzk._core' in sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True, text=True, check=True, env={"PYTHONPATH": str(SOURCE.parent)},
    )  # fmt: skip
    assert run.stdout.split() == ["False", "False"]


def test_a_proof_on_the_cpu_imports_no_gpu() -> None:
    """Neither the CUDA backend nor NVIDIA's packages."""
    code = (
        "import sys, cuzk.cli.prove, cuzk.prover.session; "
        "print([m for m in sys.modules if m.split('.')[0] == 'cuda' or 'backends.cuda' in m])"
    )
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True, text=True, check=True, env={"PYTHONPATH": str(SOURCE.parent)},
    )  # fmt: skip
    assert run.stdout.strip() == "[]"


def test_every_module_says_what_it_is() -> None:
    for path in MODULES:
        assert ast.get_docstring(ast.parse(path.read_text())), path


def test_one_test_file_of_a_name() -> None:
    """pytest and mypy know a test file by its name alone."""
    names = [path.name for path in Path(__file__).parent.rglob("*.py")]
    assert len(names) == len(set(names)), sorted({name for name in names if names.count(name) > 1})
