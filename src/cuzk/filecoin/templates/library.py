"""A library: templates by what records them, each recorded once, over one dictionary of coefficients."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cuzk.filecoin.templates.recorder import Coefficients, Recorder
from cuzk.filecoin.templates.template import Template

Record = Callable[..., Sequence[int]]
"""A function of a recorder and small arguments that returns the outputs' slots."""


class Library:
    """Grows as it is asked; circuits made from one library may share templates."""

    def __init__(self) -> None:
        self.coefficients = Coefficients()
        self._templates: dict[str, Template] = {}

    def __call__(self, record: Record, *arguments: int) -> Template:
        """The template of a recording function, named after it: ``index_level(8)``."""
        name = (
            f"{record.__name__}({', '.join(map(str, arguments))})" if arguments else record.__name__
        )
        found = self._templates.get(name)
        if found is None:
            recorder = Recorder(self.coefficients)
            outputs = record(recorder, *arguments)
            found = recorder.template(name, outputs)
            self._templates[name] = found
        return found
