"""What programs mean, in Python integers: one instance's variables, and whether the rows hold. Slow and obvious."""

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from itertools import pairwise

from cuzk.curves import BLS12_381
from cuzk.filecoin.templates.circuit import CircuitShape, Placement
from cuzk.filecoin.templates.program import Op
from cuzk.filecoin.templates.template import Rows

R = BLS12_381.r


class Run:
    """The wires of a circuit after its programs ran; ``data`` as program.py describes, header and units in turn."""

    def __init__(self, shape: CircuitShape, data: Sequence[int]) -> None:
        self.shape = shape
        self.wires = [1] + [0] * (shape.inputs + shape.aux - 1)
        self._data = iter(data)
        self._coefficients = shape.coefficients.ints()
        self.left: list[int] = []
        for placement in shape.placements():
            self._place(placement)
        self.left = list(self._data)

    @property
    def inputs(self) -> list[int]:
        return self.wires[: self.shape.inputs]

    @property
    def aux(self) -> list[int]:
        return self.wires[self.shape.inputs :]

    def values(self, rows: Rows, wires: list[int]) -> Iterator[int]:
        """One matrix of a placement times the wires."""
        starts, columns, numbers = (
            rows.starts.tolist(),
            rows.columns.tolist(),
            rows.coefficients.tolist(),
        )
        for begin, end in pairwise(starts):
            yield (
                sum(
                    self._coefficients[n] * self.wires[wires[s]]
                    for n, s in zip(numbers[begin:end], columns[begin:end], strict=True)
                )
                % R
            )

    def row_values(self) -> Iterator[tuple[int, int, int]]:
        """(A w, B w, C w) of every constraint."""
        for placement in self.shape.placements():
            wires = placement.wires.tolist()
            yield from zip(
                *(self.values(m, wires) for m in placement.template.matrices), strict=True
            )

    def broken(self) -> list[int]:
        """Rows that do not hold."""
        return [i for i, (a, b, c) in enumerate(self.row_values()) if (a * b - c) % R]

    def digests(self) -> dict[str, str]:
        """BLAKE2b-256 of the private variables and of the rows' values, 32 bytes little-endian each."""
        columns = [self.aux, *zip(*self.row_values(), strict=True)]
        return {
            name: blake2b(
                b"".join(v.to_bytes(32, "little") for v in column), digest_size=32
            ).hexdigest()
            for name, column in zip(("aux", "a", "b", "c"), columns, strict=True)
        }

    def _place(self, placement: Placement) -> None:
        template, wires = placement.template, placement.wires.tolist()
        own = 1 + template.ports
        aux, public = iter(wires[own:]), iter(wires[own + template.aux :])
        bits = iter(template.aux_bits.tolist())
        for op, operands in template.program:
            for value in self._results(op, operands, wires):
                if op is Op.PUBLIC:
                    self.wires[next(public)] = value
                else:
                    assert not next(bits) or value in (0, 1)
                    self.wires[next(aux)] = value
        assert next(bits, None) is None
        assert next(public, None) is None

    def _results(self, op: Op, operands: list[int], wires: list[int]) -> list[int]:
        match op:
            case Op.GIVEN:
                return [next(self._data)]
            case Op.GIVEN_BITS:
                return _bits(next(self._data), operands[0])
            case Op.BITS:
                return _bits(self.wires[wires[operands[1]]], operands[0])
            case Op.LINEAR | Op.PUBLIC:
                return [self._sum(operands, wires)]
            case Op.PRODUCT:
                ends = 2, 2 + 2 * operands[0], 2 + 2 * (operands[0] + operands[1])
                a = self._sum(operands[ends[0] : ends[1]], wires)
                b = self._sum(operands[ends[1] : ends[2]], wires)
                return [(a * b - self._sum(operands[ends[2] :], wires)) % R]
            case Op.PICK:
                chosen = operands[1] if self._bit(operands[0], wires) else operands[2]
                return [self.wires[wires[chosen]]]
            case Op.SUM:
                bits = [self._bit(x, wires) for x in operands[1:]]
                return _bits(sum(b << i % 32 for i, b in enumerate(bits)), operands[0])
        return self._boolean(op, [self._bit(x, wires) for x in operands])

    def _boolean(self, op: Op, bits: list[int]) -> list[int]:
        match op:
            case Op.XOR:
                return [bits[0] ^ bits[1]]
            case Op.AND:
                return [bits[0] & bits[1]]
            case Op.CH:
                return [bits[1] if bits[0] else bits[2]]
            case Op.MAJ:
                return [int(sum(bits) >= 2), bits[1] & bits[2]]
        raise AssertionError(op)

    def _bit(self, literal: int, wires: list[int]) -> int:
        return self.wires[wires[literal >> 1]] ^ (literal & 1)

    def _sum(self, pairs: list[int], wires: list[int]) -> int:
        terms = zip(pairs[::2], pairs[1::2], strict=True)
        return sum(self._coefficients[n] * self.wires[wires[s]] for n, s in terms) % R


def _bits(value: int, count: int) -> list[int]:
    assert value >> count == 0
    return [value >> i & 1 for i in range(count)]
