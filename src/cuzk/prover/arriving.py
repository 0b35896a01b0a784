"""Vectors of one proof on their way from the host to a device."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Self

from cuzk import _core
from cuzk.backends import Backend, Buffer
from cuzk.errors import CuzkError, FormatError
from cuzk.vectors import Scalars


class Arriving:
    """Keeps the host's arrays until they were copied; the ``with`` block ends when nothing reads them any more."""

    def __init__(self, backend: Backend, threads: int) -> None:
        self._backend = backend
        self._threads = threads
        self._coming: list[tuple[str, Scalars, Buffer]] = []

    def stage(self, name: str, values: Scalars) -> Buffer:
        """Begin to copy."""
        with self._named(name, values):
            buffer = self._backend.stage(values)
        self._coming.append((name, values, buffer))
        return buffer

    def settle(self) -> None:
        """Wait for the copies; FormatError names the first value that is not below r."""
        while self._coming:
            name, values, buffer = self._coming[0]
            with self._named(name, values):
                self._backend.settle(buffer)
            self._coming.pop(0)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        while self._coming:  # an error is under way already
            with suppress(CuzkError):
                self._backend.settle(self._coming[0][2])
            self._coming.pop(0)

    @contextmanager
    def _named(self, name: str, values: Scalars) -> Iterator[None]:
        """An error that says which vector, and not its values, which are secret."""
        try:
            yield
        except FormatError as error:
            curve = values.curve
            index = _core.first_not_canonical(curve.name, "fr", values.words, self._threads)
            if index < 0:
                raise
            raise FormatError(
                f"{name}: value {index}: expected one below r, found a larger one"
            ) from error
