"""Sizes of parameter files, from counts of circuits, against those that are known of the published files."""

import pytest
from own_files import circuit, params_file

from cuzk.catalogue.key_facts import KeyFacts
from cuzk.catalogue.needs import estimate
from cuzk.curves import BLS12_381
from cuzk.errors import CircuitError, OutOfMemory
from cuzk.filecoin import key_sizes
from cuzk.filecoin.parameters import parameters_named
from cuzk.filecoin.prove import CircuitProver


@pytest.mark.parametrize(
    ("name", "vk", "params"),
    [
        ("porep-2KiB", 4_708, 1_114_707_768),
        ("porep-32GiB", 32_356, 47_373_928_632),
        ("window-2KiB", 3_076, 11_501_496),
        ("window-32GiB", 2_481_508, 60_780_374_232),
        ("winning-2KiB", 13_636, 47_299_128),
        ("winning-32GiB", 13_636, 192_050_232),
        ("update-2KiB", 1_348, 655_789_464),
        ("update-32GiB", 1_348, 34_453_501_368),
    ],
)
def test_published_sizes(name: str, vk: int, params: int) -> None:
    shape = circuit(name)
    assert key_sizes.vk_bytes(shape) == vk
    assert key_sizes.params_bytes(shape) == params


def test_sections_in_megabytes() -> None:
    sections = key_sizes.section_bytes(circuit("porep-32GiB"))
    found = {name: round(count / 1e6) for name, count in sections.items()}
    assert found == {"h": 12_885, "l": 12_496, "a": 12_456, "b_g1": 3_179, "b_g2": 6_358}


@pytest.mark.parametrize(
    ("text", "circuit_name"),
    [
        ("porep-32GiB", "porep-32GiB"),
        ("porep-4KiB", "porep-4KiB"),
        ("StackedDrg32GiBV1", "porep-32GiB"),
        ("StackedDrg8MiBV1_2_Feat_NiPoRep", "porep-8MiB"),
        ("seal-9", "porep-64GiB"),
        ("StackedDrgWinning512MiBV1", "winning-512MiB"),
        ("StackedDrgWindow2KiBV1_1", "window-2KiB"),
        ("post-3", "winning-32GiB"),
        ("update-3", "update-32GiB"),
    ],
)
def test_names_of_circuits_and_of_proof_types(text: str, circuit_name: str) -> None:
    assert parameters_named(text).circuit == circuit_name


def test_a_gpu_needs_less_of_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the service reckons with for a host that has a GPU, 53.4 GiB, is enough; a CPU wants 64."""
    shape, key = circuit("porep-32GiB"), params_file("window-2KiB")
    needs = estimate(
        KeyFacts(
            BLS12_381, "porep", shape.inputs + shape.aux, shape.log_domain, (), key_sizes.params_bytes(shape), True,
            circuit_terms=sum(shape.terms), evaluated=True,
        ),
        "cuda:0",
    )  # fmt: skip
    host = needs.key["host"] + needs.partition["host"]
    assert host >> 30 == 53
    monkeypatch.setattr(key_sizes, "installed_bytes", lambda: host)
    for device in ("cpu", "auto"):
        with pytest.raises(OutOfMemory, match="porep-32GiB: a proof needs 68771673688 bytes"):
            CircuitProver(shape, key, insecure_key=True, device=device)
    with pytest.raises(CircuitError, match="the key of another circuit"):  # memory is no reason
        CircuitProver(shape, key, insecure_key=True, device="cuda:0")
    with pytest.raises(OutOfMemory, match="the limit is 50000000000"):
        CircuitProver(shape, key, insecure_key=True, device="cuda:0", memory=50_000_000_000)
