"""What every test can ask for: the shared fixture files, both curves, both arithmetic paths."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from cuzk import _core
from cuzk.backends.cuda.device import CudaMachine, open_card
from cuzk.backends.cuda.machine import Machine
from cuzk.curves import CURVES, Curve
from cuzk.errors import DeviceUnavailable


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
