"""Settings: defaults, the example file, every kind of mistake in one line."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import BaseModel

from cuzk.config import Address, CircuitSettings, Settings, address, read_settings
from cuzk.errors import FormatError
from cuzk.filecoin.parameters import DEFAULT_FOLDER

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "cuzk.toml"
CIRCUIT = '[[circuit]]\nid = "a"\nkind = "circom"\nkey = "a.zkey"\n'


@pytest.fixture
def read(tmp_path: Path) -> Callable[[str], Settings]:
    def call(text: str) -> Settings:
        path = tmp_path / "cuzk.toml"
        path.write_text(text)
        return read_settings(path)

    return call


@pytest.fixture
def refused(read: Callable[[str], Settings], tmp_path: Path) -> Callable[[str], str]:
    def call(text: str) -> str:
        with pytest.raises(FormatError) as caught:
            read(text)
        line = str(caught.value)
        assert "\n" not in line
        assert line.startswith(f"{tmp_path}/cuzk.toml: ")
        return line.removeprefix(f"{tmp_path}/cuzk.toml: ")

    return call


def test_the_example_says_the_defaults(read: Callable[[str], Settings]) -> None:
    assert read_settings(EXAMPLE) == read("") == Settings()


def uncommented(text: str) -> str:
    """The example with every key that is commented out."""
    return re.sub(r"^# ((?:[a-z_]+ = .*)|(?:\[\[circuit\]\]))$", r"\1", text, flags=re.MULTILINE)


def test_the_example_has_every_key() -> None:
    tables = tomllib.loads(uncommented(EXAMPLE.read_text()))
    for name, field in Settings.model_fields.items():
        if name == "circuits":
            continue
        model = field.annotation
        assert isinstance(model, type)
        assert issubclass(model, BaseModel)
        assert tables.pop(name).keys() == model.model_fields.keys(), name
    circuits = tables.pop("circuit")
    assert set().union(*circuits) == set(CircuitSettings.model_fields)
    assert not tables


def test_every_key_of_the_example_has_a_line_above_it() -> None:
    lines = EXAMPLE.read_text().splitlines()
    known = set().union(
        CircuitSettings.model_fields,
        *(getattr(f.annotation, "model_fields", ()) for f in Settings.model_fields.values()),
    )  # fmt: skip
    explained = set()
    for i, line in enumerate(lines):
        match = re.match(r"(?:# )?([a-z_]+) = ", line)
        if match and lines[i - 1].startswith("# ") and " = " not in lines[i - 1]:
            explained.add(match[1])
    assert known - explained == {"tls_key"}  # explained with its certificate


def test_the_uncommented_example_is_read(read: Callable[[str], Settings], tmp_path: Path) -> None:
    found = read(uncommented(EXAMPLE.read_text()))
    assert [circuit.id for circuit in found.circuits] == ["multiplier", "porep-32GiB"]
    assert found.circuits[0].key == tmp_path / "multiplier.zkey"
    assert (found.circuits[1].key, found.circuits[1].proves) == (None, "porep-32GiB")
    assert found.security.tls_key == tmp_path / "server.key"


def test_filecoins_folder() -> None:
    assert Path(DEFAULT_FOLDER) == Settings().filecoin.parameters


def test_values(
    read: Callable[[str], Settings], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/somebody")
    text = """
        [daemon]
        listen = "unix:///run/cuzk.sock"
        status_listen = ""
        state = "journal"
        drain = 1.5
        [memory]
        host = "1.5 GiB"
        pinned = 4096
        device = "512MiB"
        [devices]
        use = ["cuda:0", "cuda:GPU-0123abcd"]
        threads = 8
        lanes = 1
        [queue]
        ageing = "90s"
        keep = "7d"
        [filecoin]
        parameters = "~/params"
        [[circuit]]
        id = "window"
        kind = "filecoin"
        proof = "window-2KiB"
    """
    found = read(text)
    assert found.daemon.state == tmp_path / "journal"
    assert found.daemon.drain == 1.5
    assert found.memory.model_dump() == {
        "host": 3 << 29,
        "pinned": 4096,
        "device": 512 << 20,
        "margin": None,
        "headroom": None,
    }
    assert found.devices.use == ("cuda:0", "cuda:GPU-0123abcd")
    assert (found.devices.threads, found.devices.lanes) == (8, 1)
    assert (found.queue.ageing, found.queue.keep) == (90, 604_800)
    assert found.filecoin.parameters == Path("/home/somebody/params")
    assert found.circuits[0].proves == "window-2KiB"


def test_a_relative_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: Callable[[str], Settings]
) -> None:
    read(CIRCUIT)
    monkeypatch.chdir(tmp_path)
    assert read_settings(Path("cuzk.toml")).circuits[0].key == tmp_path / "a.zkey"


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("../out/a.zkey", "out/a.zkey"),
        ("./../../a.zkey", "../a.zkey"),
        ("link/../a.zkey", "examples/link/../a.zkey"),
        ("../" * 40 + "a.zkey", "/a.zkey"),
    ],
)
def test_a_relative_path_is_shown_without_the_folder_that_it_leaves(
    tmp_path: Path, given: str, meant: str
) -> None:
    """What is behind a name stays: were that a link to elsewhere/b, link/.. is elsewhere."""
    folder = tmp_path.resolve() / "there"
    (folder / "examples").mkdir(parents=True)
    (folder / "elsewhere" / "b").mkdir(parents=True)
    (folder / "examples" / "link").symlink_to(folder / "elsewhere" / "b")
    settings = folder / "examples" / "cuzk.toml"
    settings.write_text(f'[[circuit]]\nid = "a"\nkind = "circom"\nkey = "{given}"\n')
    key = read_settings(settings).circuits[0].key
    expected = folder.parent / "a.zkey" if meant == "../a.zkey" else folder / meant
    assert key is not None
    assert str(key) == str(expected)
    assert key.resolve() == (folder / "examples" / given).resolve()


REFUSED = {
    '[daemon]\nlisten = "9820"': ["daemon.listen: expected ", "127.0.0.1:9820", "found '9820'"],
    '[daemon]\nlisten = ":9820"': ["daemon.listen: expected ", "found ':9820'"],
    '[daemon]\nlisten = "localhost:70000"': ["daemon.listen: expected ", "70000"],
    '[daemon]\nlisten = "::1:9820"': ["daemon.listen: expected an IPv6 address in brackets"],
    '[daemon]\nlisten = "unix://run/x"': ["daemon.listen: expected ", "unix:///absolute/path"],
    '[daemon]\nlisten = "unix:///a\\nb"': ["daemon.listen: expected ", "'unix:///a\\nb'"],
    f'[daemon]\nlisten = "unix:///{"x" * 100}"': ["daemon.listen: expected a socket's path", "101"],
    '[daemon]\nlisten = ""': ["daemon.listen: expected an address, found none"],
    "[daemon]\nlisten = 9820": ['daemon.listen: expected "host:port" or "unix:///absolute/path", found 9820'],
    '[daemon]\nstatus_listen = "127.0.0.1:9820"': ["daemon.status_listen: expected another"],
    '[daemon]\ndrain = "soon"': ["daemon.drain: expected a duration like", "found 'soon'"],
    "[daemon]\ndrain = -1": ["daemon.drain: expected a duration", "found -1"],
    '[devices]\npatience = "1s"': ["devices.patience: expected 5 s or more, found 1 s"],
    "[daemon]\ndrain = inf": ["daemon.drain: expected at most", "found inf"],
    "[daemon]\nstate = 3": ["daemon.state: expected a path, found 3"],
    '[daemon]\nlog_level = "loud"': ["daemon.log_level: expected one of 'debug', ", "found 'loud'"],
    "[daemon]\nport = 1": ["daemon.port: expected one of listen, ", "found the unknown key port"],
    "[daemno]": ["daemno: expected one of daemon, ", "circuit, found the unknown key daemno"],
    '"a\\nb" = 1': ["'a\\nb': expected one of", "found the unknown key 'a\\nb'"],
    "daemon = 4": ["daemon: expected a table, found 4"],
    '[security]\nallow_remote = "yes"': ["security.allow_remote: expected true or false, found 'yes'"],
    '[security]\ntls_key = "k"': ["security.tls_certificate: expected one with tls_key, found none"],
    "[security]\nclient_requests = 0": ["security.client_requests: expected at least 1, found 0"],
    "[security]\nmessage_limit = 0": ["security.message_limit: expected at least 1 byte, found 0"],
    "[security]\nclient_requests = 2.5": ["security.client_requests: expected a whole number, found 2.5"],
    '[memory]\nhost = "12GB"': ["memory.host: expected a size like", "found '12GB'; or \"auto\""],
    "[memory]\nhost = true": ["memory.host: expected a size like", "found true"],
    '[devices]\nuse = "cpu"': ["devices.use: expected an array, found 'cpu'"],
    '[devices]\nuse = ["tpu"]': ["devices.use: expected auto, cpu, ", "found 'tpu'"],
    '[devices]\nuse = ["cpu", "cpu"]': ["devices.use: expected each device once, found cpu twice"],
    '[devices]\nuse = ["auto", "cpu"]': ["devices.use: expected \"auto\" alone"],
    "[devices]\nuse = []": ["devices.use: expected at least one device, found none"],
    "[devices]\nuse = [1]": ["devices.use[0]: expected a text, found 1"],
    "[devices]\nlanes = 9": ["devices.lanes: expected at most 4, found 9"],
    '[devices]\nthreads = "many"': ["devices.threads: expected a whole number or \"auto\", found 'many'"],
    '[queue]\nlimit = 0\nageing = "x"\nkeep = true': ["queue.limit: expected at least 1, found 0 (and 2 more)"],
    '[circuit]\nid = "a"': ["circuit: expected [[circuit]] for each circuit, found [circuit]"],
    "circuit = 3": ["circuit: expected an array, found 3"],
    "circuit = [1]": ["circuit[0]: expected a table, found 1"],
    f"{CIRCUIT}foo = 1": ["circuit[0].foo: expected one of id, kind, ", "found the unknown key foo"],
    f"{CIRCUIT}proof = 'x'": ["circuit[0].proof: expected none with kind circom, found one"],
    f"{CIRCUIT}key_digest = 'x'": ["circuit[0].key_digest: expected 32 or 128 hexadecimal", "found 'x'"],
    f"{CIRCUIT}preload = 1": ["circuit[0].preload: expected true or false, found 1"],
    f"{CIRCUIT}{CIRCUIT}": ["circuit[1].id: expected one that no other has, found 'a' twice"],
    '[[circuit]]\nid = "a"': ["circuit[0].kind: expected a value, found none"],
    '[[circuit]]\nid = "a"\nkind = "circom"': ["circuit[0].key: expected a .zkey or .params file, found none"],
    '[[circuit]]\nid = "a b"\nkind = "filecoin"': ["circuit[0].id: expected letters", "found 'a b'"],
    '[[circuit]]\nid = "a"\nkind = "plonk"': ["circuit[0].kind: expected one of", "found 'plonk'"],
    '[[circuit]]\nid = "a"\nkind = "filecoin"\ncircuit = "x"': ["circuit[0].circuit: expected none with kind filecoin"],
    '[[circuit]]\nid = "a"\nkind = "filecoin"\nproof = "b"\n[[circuit]]\nid = "b"\nkind = "filecoin"': ["circuit[1].proof: expected one that no other has, found 'b' twice"],
    "[queue]\nlimit = ": ["line 2, column 9: expected TOML, found a mistake"],
    "[queue]\nlimit = 1\nlimit = 2": ["line 3, column 10: expected TOML", "overwrite"],
}  # fmt: skip


@pytest.mark.parametrize("text", REFUSED)
def test_mistakes(text: str, refused: Callable[[str], str]) -> None:
    line = refused(text)
    assert line.startswith(REFUSED[text][0]), line
    for words in REFUSED[text]:
        assert words in line


REMOTE = '[daemon]\nlisten = "0.0.0.0:9820"\n[security]\nallow_remote = true\n'
FILES = 'tls_certificate = "c"\ntls_key = "k"\ntoken_file = "t"\n'


@pytest.mark.parametrize("key", ["listen", "status_listen"])
@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.1", "[::]", "prover.example"])
def test_d17_other_machines_need_a_line(
    key: str, host: str, refused: Callable[[str], str], read: Callable[[str], Settings]
) -> None:
    address_ = f'[daemon]\n{key} = "{host}:1"\n'
    line = refused(address_)
    assert line.startswith(f"daemon.{key}: expected a loopback address or a Unix socket, found ")
    assert "security.allow_remote = true, tls_certificate, tls_key and token_file" in line
    allowed = f"{address_}[security]\nallow_remote = true\n"
    assert refused(allowed).startswith("security.tls_certificate: expected one where daemon.")
    pair = 'tls_certificate = "c"\ntls_key = "k"\n'
    assert refused(allowed + pair).startswith("security.token_file: expected one where daemon.")
    assert read(allowed + FILES).security.allow_remote


def test_addresses() -> None:
    for text, host, port in (
        ("127.0.0.1:9820", "127.0.0.1", 9820),
        ("127.1.2.3:0", "127.1.2.3", 0),
        ("localhost:1", "localhost", 1),
        ("[::1]:2", "::1", 2),
    ):
        found = address(text)
        assert found == Address(host, port)
        assert found.local
        assert str(found) == text
    assert address("unix:///run/a").path == Path("/run/a")
    assert address("unix:///run/a").local
    assert not address("example.org:1").local


def test_files_that_are_none(tmp_path: Path) -> None:
    for path, words in (
        (tmp_path / "none.toml", "no such file"),
        (tmp_path, "is a directory"),
    ):
        with pytest.raises(FormatError, match=f"expected a file of settings, found {words}"):
            read_settings(path)
    (tmp_path / "latin.toml").write_bytes(b"# \xe9\n")
    with pytest.raises(FormatError, match="expected UTF-8, found another byte at offset 2"):
        read_settings(tmp_path / "latin.toml")
    (tmp_path / "large.toml").write_bytes(b"#" * (1 << 20) + b"\n")
    with pytest.raises(FormatError, match="at most 1048576 bytes, found 1048577"):
        read_settings(tmp_path / "large.toml")


def test_settings_do_not_change() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Settings().daemon.listen = "other"
