"""How bytes get from the host to a device: the choices, each of which a measurement may name."""

from __future__ import annotations

from dataclasses import dataclass

from cuzk.errors import FormatError

CHOICES = {
    "vectors": ("ahead", "inside"),
    "pinning": ("auto", "always", "never"),
    "batches": ("kept", "deferred", "each"),
    "points": ("auto", "host"),
}


@dataclass(frozen=True)
class Transfers:
    """The defaults are what measured best; the others are what they are measured against.

    vectors   "ahead": on an upload stream, before their turn; "inside": in their turn on the compute stream,
              from pageable memory.
    pinning   "auto": pages of points that stay in host memory are locked as long as these are in use; "always":
              those of vectors, too, one by one; "never": all is copied through buffers.
    batches   of sums over points in host memory: "kept" (buckets kept across batches, one reduction), "deferred"
              (each batch its own result, waited for one batch late), "each" (waited for at once).
    points    "auto": on the device as the plan says; "host": always streamed.
    """

    vectors: str = "ahead"
    pinning: str = "auto"
    batches: str = "kept"
    points: str = "auto"

    def __post_init__(self) -> None:
        for name, known in CHOICES.items():
            if (found := getattr(self, name)) not in known:
                raise FormatError(
                    f"transfers: {name}: expected {' or '.join(known)}, found {found!r}"
                )
