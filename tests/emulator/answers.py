"""What a function of ``cuda.bindings.driver`` answers: a status of the real module's, and what it gives."""

from __future__ import annotations

from typing import Any

from cuda.bindings import driver as real

OK = real.CUresult.CUDA_SUCCESS
Answer = tuple[Any, ...]


def status(name: str) -> Any:
    return getattr(real.CUresult, f"CUDA_ERROR_{name}")


def void(_: object) -> None:
    """A step of a stream gives nothing."""
