"""What a device must be able to do to prove: verbs over buffers.

One object is one device, one curve and one queue of work, used by one thread at a time: a *lane*; ``beside``
gives another lane of the same device. Work may be asynchronous: a result is waited for by ``get``,
``first_nonzero``, ``msm``, what ``start_msm`` returns and ``milliseconds`` alone; ``put`` and ``settle`` wait for
copies. A :class:`Buffer` knows its kind, length and form, so that calls have no flags. How a backend orders the elements of a vector inside a buffer (bit-reversed, say) is its own
affair: ``get`` and ``msm`` see natural order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from cuzk.curves import Curve
from cuzk.r1cs import Matrix
from cuzk.timeline import Timeline
from cuzk.vectors import Points, Scalars


@dataclass
class Buffer:
    """A vector or matrix on a device; ``data`` and ``staged`` are the backend's own."""

    curve: Curve
    kind: str  # "scalar", "g1", "g2", "matrix"
    length: int
    montgomery: bool
    data: object
    staged: object = None  # what `settle` waits for, also when the buffer was consumed


@dataclass(frozen=True)
class Workload:
    """Sizes of the proofs to come: what a device needs to know to share out its memory."""

    log_domain: int
    wires: int
    matrices: tuple[tuple[int, int, int], ...]  # rows, terms, dictionary entries of each
    queries: tuple[tuple[str, int], ...]  # group and points of each
    repeated: bool = False  # proofs so many that work on the key pays if it makes each quicker
    lanes: int = 1  # proofs at a time


class Backend(Protocol):
    """One device, one curve."""

    name: str  # "reference", "cpu", "cuda:0"
    title: str  # what the device calls itself: "NVIDIA H200"
    curve: Curve
    timeline: Timeline  # where copies, waits and spans of the device are recorded; may be replaced

    @property
    def lanes(self) -> int:
        """Proofs at a time that the last plan has room for: at most what it was asked for, 1 without a plan."""
        ...

    @property
    def waiting(self) -> int:
        """Further proofs, on lanes of their own, whose witness the last plan has room for while others compute."""
        ...

    def plan(self, work: Workload) -> int:
        """Share out the device's memory, before anything is put: the bytes that a proof takes at most.

        0 where a device has no memory of its own. OutOfMemory where no proof of this size is possible.
        """
        ...

    def put(self, value: Scalars | Points | Matrix) -> Buffer:
        """Make ``value`` known to the device; the caller keeps it alive and unchanged while the buffer is used.

        Scalars may be in either form, a matrix's values are in Montgomery form. FormatError names the first
        scalar that is not below r; OutOfMemory where a vector or matrix does not fit (points may stay where
        they are).
        """
        ...

    def stage(self, values: Scalars) -> Buffer:
        """:meth:`put` in two steps: begins to copy and returns at once where the device can.

        The buffer may be used at once: what uses it comes after the copy. The caller keeps ``values`` alive and
        unchanged until :meth:`settle`. OutOfMemory as for :meth:`put`.
        """
        ...

    def settle(self, buffer: Buffer) -> None:
        """Wait until all of a staged buffer was copied, for no other work; then its pages are let go.

        FormatError, if not already by :meth:`stage`, names the first scalar that is not below r. The buffer may
        have been consumed; one that is settled, or was never staged, is left alone. A staged buffer that is
        dropped instead lets go of its pages when its copy is done.
        """
        ...

    def beside(self) -> Backend:
        """Another lane of the device, for another thread: its own queue of work, the same memory and plan.

        Buffers of points and matrices may be used by all lanes, those of scalars by their own. A device
        without a queue of its own gives itself.
        """
        ...

    def notes(self) -> list[str]:
        """In words, what was done otherwise than best since the last call, and why."""
        ...

    def get(self, buffer: Buffer) -> Scalars | Points:
        """The buffer's contents in natural order, in the buffer's form."""
        ...

    def product(self, matrix: Buffer, witness: Buffer, size: int) -> Buffer:
        """matrix * witness (plain form), zero-padded to ``size`` rows, in Montgomery form.

        KernelError where the witness has fewer wires than the matrix names or the rows are more than ``size``.
        """
        ...

    def padded(self, values: Buffer, size: int) -> Buffer:
        """A vector in either form as a Montgomery vector of ``size`` elements, zeros at its end.

        KernelError where it is longer.
        """
        ...

    def ntt(self, values: Buffer, root: int, *, inverse: bool = False, shift: int = 1) -> Buffer:
        """Transform a Montgomery vector of n = 2^k elements; ``values`` is consumed.

        Forward: y_j = sum_i x_i (shift * root^j)^i. Inverse: the x that gives y, so that
        ``ntt(ntt(x, root, shift=g), root, inverse=True, shift=g)`` is x. ``root`` is a primitive n-th
        root of unity, plain integers both.
        """
        ...

    def extend(self, values: Sequence[Buffer], root: int, shift: int) -> list[Buffer]:
        """From values at root^j to values at shift * root^j, each; ``values`` are consumed.

        The same as an inverse and a forward :meth:`ntt`, in fewer passes where a device can.
        """
        ...

    def pointwise(
        self,
        a: Buffer,
        b: Buffer | None = None,
        minus: Buffer | None = None,
        scale: int = 1,
        *,
        into: Buffer | None = None,
    ) -> Buffer:
        """(a_i * b_i - minus_i) * scale, all Montgomery; no ``b`` is all ones, no ``minus`` all zeros.

        ``scale`` is a plain integer. The result overwrites ``into`` (one of the operands, of which only
        the result may be used from then on) or, without it, is new memory.
        """
        ...

    def msm(self, bases: Buffer, scalars: Buffer, wires: object = None) -> Points:
        """sum_k scalars[wires[k]] * bases[k] as a vector of one point.

        ``wires`` is None (k itself), a range, or a (n,) uint32 array. Scalars in either form.
        """
        ...

    def start_msm(
        self, bases: Buffer, scalars: Buffer, wires: object = None
    ) -> Callable[[], Points]:
        """:meth:`msm` in two steps: a device with a queue begins at once, the returned function waits.

        The operands stay what they are until it was called. It is called once.
        """
        ...

    def combine(self, points: Points, scalars: Scalars) -> Points:
        """sum scalars_i * points_i for a handful of points in host memory, scalars in plain form."""
        ...

    def first_nonzero(self, values: Buffer) -> int | None:
        """The lowest index, in natural order, of an element that is not zero."""
        ...

    def mark(self) -> Any:
        """A moment: when the work asked for so far is done."""
        ...

    def milliseconds(self, start: Any, end: Any) -> float:
        """The device's time between two marks; waits for the second."""
        ...

    def free_bytes(self) -> int:
        """Memory that is still free on the device."""
        ...

    def resident_bytes(self) -> int:
        """Device memory that the matrices and points put so far take (0: they stay where they were)."""
        ...

    def shares(self) -> tuple[int, int]:
        """Of the last plan: bytes that stay from proof to proof, and those of each proof at a time.

        Without what a proof only takes where it is free; (0, 0) where a device has no memory of its own.
        """
        ...

    def streamed_bytes(self) -> int:
        """Of the points put so far, those that the device has no room for and copies in every proof."""
        ...
