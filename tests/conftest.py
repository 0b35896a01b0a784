"""What every test can ask for: the shared fixture files, both curves, both arithmetic paths."""

import gc
import importlib
import os
import signal
import sys
from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import Path

import pytest

from cuzk import _core
from cuzk.backends.cuda.cuda_machine import CudaMachine
from cuzk.backends.cuda.device import open_card
from cuzk.backends.cuda.machine import Machine
from cuzk.curves import CURVES, Curve
from cuzk.errors import DeviceUnavailable


def loopback_only(event: str, arguments: tuple[object, ...]) -> None:
    """An audit hook: no test but interop's connects to another machine."""
    if event != "socket.connect" or "tests/interop/" in os.environ.get("PYTEST_CURRENT_TEST", ""):
        return
    address = arguments[1]
    host = str(address[0]).partition("%")[0] if isinstance(address, tuple) else "localhost"
    if host != "localhost" and not ip_address(host).is_loopback:
        raise RuntimeError(f"a test connects to {host}, which is another machine")


sys.addaudithook(loopback_only)
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    if signal.getsignal(number) is signal.SIG_IGN:
        # As where a shell starts this in the background or by nohup. What the tests start would ignore it, too;
        # a handler of any kind is not inherited.
        signal.signal(number, lambda *_: None)


@pytest.fixture(scope="session")
def fixtures() -> Path:
    """Files of other projects: CUZK_FIXTURES, or ../shared/fixtures beside the project."""
    root = Path(__file__).resolve().parents[1]
    folder = Path(os.environ.get("CUZK_FIXTURES", root.parent / "shared" / "fixtures"))
    if not folder.is_dir():
        pytest.skip(f"fixture files are not there: {folder} (set CUZK_FIXTURES)")
    return folder


@pytest.fixture
def gpu_machine() -> Machine:
    """A stream of the first GPU; with CUZK_REQUIRE_GPU set (`make gpu`) a test without one fails."""
    try:
        return CudaMachine(open_card(0))
    except DeviceUnavailable as error:
        if os.environ.get("CUZK_REQUIRE_GPU"):
            raise
        pytest.skip(str(error))


@pytest.fixture(params=["bn254", "bls12_381"])
def curve(request: pytest.FixtureRequest) -> Curve:
    return CURVES[request.param]


@pytest.fixture(params=_core.paths())
def arithmetic(request: pytest.FixtureRequest) -> Iterator[str]:
    """Run the test once per arithmetic path of this machine ("adx", "portable")."""
    before = _core.path()
    _core.use_path(request.param)
    yield request.param
    _core.use_path(before)


def pytest_collection_finish() -> None:
    """What collecting 12,000 tests has made stays: no collection of garbage looks through it again (200 ms each).

    Hypothesis is imported before, for then it asks what refers to the generators of random numbers that it is given.
    """
    importlib.import_module("hypothesis")
    gc.collect()
    gc.freeze()
