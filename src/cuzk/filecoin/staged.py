"""A partition whose witness was made ahead of its proof."""

from __future__ import annotations

from dataclasses import dataclass, field

from cuzk.errors import CircuitError
from cuzk.filecoin.task import Task
from cuzk.prover.ready import Ready
from cuzk.timeline import Span


@dataclass(frozen=True)
class StagedPartition:
    """Of one task; nothing of the witness is shown. ``milliseconds`` and ``spans`` tell how it was made."""

    task: Task = field(repr=False)
    number: int
    ready: Ready = field(repr=False)
    milliseconds: float
    spans: tuple[Span, ...] = field(repr=False)

    @property
    def nbytes(self) -> int:
        """Of the host's memory, as long as this object is held."""
        return self.ready.nbytes


def expect_staged_for(staged: StagedPartition, task: Task, number: int) -> None:
    """CircuitError where it is another partition's, or another task's."""
    where = f"{task.proof.name}: partition {number}"
    if staged.number != number:
        raise CircuitError(
            f"{where}: expected what was staged for it, found partition {staged.number}"
        )
    if staged.task is not task:
        raise CircuitError(f"{where}: expected what was staged for this task, found another task's")
