"""What a device must be able to do to prove: seven verbs over buffers.

One object is one device and one lane. Work may be asynchronous inside; ``get`` and ``msm`` are the only
waits. A :class:`Buffer` knows its kind, length and form, so that calls have no flags. How a backend
orders the elements of a vector inside a buffer (bit-reversed, say) is its own affair: ``get`` and ``msm``
see natural order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from cuzk.curves import Curve
from cuzk.r1cs import SparseMatrix
from cuzk.vectors import Points, Scalars


@dataclass
class Buffer:
    """A vector or matrix on a device; ``data`` is the backend's own."""

    curve: Curve
    kind: str  # "scalar", "g1", "g2", "matrix"
    length: int
    montgomery: bool
    data: object


class Backend(Protocol):
    """One device, one curve."""

    name: str  # "reference", "cpu", "cuda:0"
    curve: Curve

    def put(self, value: Scalars | Points | SparseMatrix) -> Buffer:
        """Make ``value`` known to the device; the caller keeps it alive and unchanged meanwhile."""
        ...

    def get(self, buffer: Buffer) -> Scalars | Points:
        """The buffer's contents in natural order, in the buffer's form."""
        ...

    def product(self, matrix: Buffer, witness: Buffer, size: int) -> Buffer:
        """matrix * witness (plain form), zero-padded to ``size`` rows, in Montgomery form."""
        ...

    def ntt(self, values: Buffer, root: int, *, inverse: bool = False, shift: int = 1) -> Buffer:
        """Transform a Montgomery vector of n = 2^k elements; ``values`` is consumed.

        Forward: y_j = sum_i x_i (shift * root^j)^i. Inverse: the x that gives y, so that
        ``ntt(ntt(x, root, shift=g), root, inverse=True, shift=g)`` is x. ``root`` is a primitive n-th
        root of unity, plain integers both.
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

    def free_bytes(self) -> int:
        """Memory that is still free on the device."""
        ...
