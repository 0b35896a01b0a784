"""Partitions whose witnesses were made ahead of their proofs."""

from __future__ import annotations

import pytest
from made_partitions import CIRCUIT, both
from own_files import circuit, params_file

import cuzk.filecoin.prove as proving
from cuzk.errors import CircuitError, FormatError
from cuzk.filecoin.prove import CircuitProver


def test_of_what_is_staged_nothing_is_done_again(monkeypatch: pytest.MonkeyPatch) -> None:
    task, shape = both(), circuit(CIRCUIT)
    phases: list[str] = []
    with CircuitProver(
        shape,
        params_file(CIRCUIT),
        insecure_key=True,
        device="cpu",
        threads=2,
        on_phase=phases.append,
    ) as prover:
        first, second = (prover.stage(task, number) for number in (0, 1))
        assert phases == []
        assert first.nbytes == 32 * (shape.inputs + shape.aux)
        assert second.number == 1
        assert "uint64" not in repr(second)
        assert "data" not in repr(second)
        monkeypatch.setattr(proving, "assign", None)
        made = [prover.partition(task, k, staged) for k, staged in ((1, second), (0, first))]
        for part, staged in zip(made, (second, first), strict=True):
            assert part.milliseconds["witness"] == staged.milliseconds > 0
            assert {span.facts["partition"] for span in part.spans} == {staged.number}
            assert [span.name for span in part.spans if span.name == "witness"] == ["witness"]
            assert {"check", "commit", "prove"} <= {span.name for span in part.spans}
        assert len(prover.whole(task, [part.data for part in made[::-1]])) == 384
        for number, message in ((0, "found partition 1"), (2, "expected 0 to 1, found 2")):
            with pytest.raises((CircuitError, FormatError), match=message):
                prover.partition(task, number, second)
        with pytest.raises(CircuitError, match=r"partition 1: expected .* found another task's"):
            prover.partition(both(), 1, second)
        with pytest.raises(FormatError, match="expected 0 to 1, found -1"):
            prover.stage(task, -1)
