"""One thread of a kernel's PTX, interpreted: what the emulator cannot show, since it builds the sources as C++.

Enough for arithmetic in registers: integers of 32 and 64 bits, the carry flag, loads and stores of global
memory, branches. No calls, no shared memory. PTX as NVRTC writes it (ISA manual, "Integer arithmetic" and
"Extended-precision integer arithmetic").
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

SPECIAL = {"%tid.x": 0, "%ctaid.x": 0, "%ntid.x": 1, "%nctaid.x": 1}
OPERAND = re.compile(r"\{[^}]*\}|\[[^\]]*\]|[^,\s]+")
COMPARE: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "gt": lambda a, b: a > b,
    "le": lambda a, b: a <= b,
    "ge": lambda a, b: a >= b,
}


def statements(text: str, kernel: str) -> tuple[list[str], dict[str, int]]:
    """A kernel's instructions in order, and where its labels point."""
    text = re.sub(r"//[^\n]*", "", text)
    start = text.index("{", text.index(")", text.index(f".entry {kernel}(")))
    body = text[start : text.find(".entry", start) if ".entry" in text[start:] else len(text)]
    code: list[str] = []
    labels: dict[str, int] = {}
    for line in " ".join(body.split()).split(";"):
        rest = line.strip()
        while match := re.match(r"[{}]\s*|(?P<label>\$[\w$]+):\s*", rest):
            if match["label"]:
                labels[match["label"]] = len(code)
            rest = rest[match.end() :]
        if rest and not rest.startswith("."):
            code.append(rest)
    return code, labels


@dataclass
class Thread:
    """Registers, the carry flag and memory by bytes; parameters are 64-bit words."""

    text: str
    kernel: str
    memory: dict[int, int]
    parameters: list[int]
    registers: dict[str, int] = field(default_factory=dict)
    carry: int = 0

    def run(self) -> None:
        code, labels = statements(self.text, self.kernel)
        at = 0
        while (line := code[at]) != "ret":
            at += 1
            guard = re.match(r"@(!?)(%?\w+)\s+", line)
            if guard:
                if bool(self.registers[guard[2]]) == (guard[1] == "!"):
                    continue
                line = line[guard.end() :]
            name, _, rest = line.partition(" ")
            if name.startswith("bra"):
                at = labels[rest.strip()]
            else:
                self.step(name.split("."), OPERAND.findall(rest))

    def value(self, operand: str) -> int:
        if operand in self.registers:
            return self.registers[operand]
        return SPECIAL[operand] if operand in SPECIAL else int(operand, 0)

    def step(self, op: list[str], operands: list[str]) -> None:
        """One instruction: ``op`` is its name at the dots, the last part its type."""
        if op[0] in ("ld", "st"):
            self.move_memory(op, operands)
        elif op[0] == "mov" and "{" in "".join(operands):
            self.move_halves(operands)
        else:
            kind = op[-1]
            bits = int(kind[1:]) if kind[1:].isdigit() else 1
            mask = (1 << bits) - 1
            given = [self.value(x) for x in operands[1:]]
            if kind[0] == "s" and op[0] != "selp":
                given = [(v & mask) - ((v & mask) >> (bits - 1) << bits) for v in given]
            elif op[0] not in ("cvta", "selp"):
                given = [v & mask for v in given]
            self.registers[operands[0]] = self.result(op, given, bits) & ((1 << 64) - 1)

    def result(self, op: list[str], given: list[int], bits: int) -> int:
        mask, name = (1 << bits) - 1, op[0]
        if name in ("add", "addc", "sub", "subc", "mad", "madc"):
            return self.carried(op, given, bits)
        if name == "mul":
            product = given[0] * given[1]
            wide = (1 << 2 * bits) - 1
            return {"wide": product & wide, "hi": product >> bits & mask, "lo": product & mask}[op[1]]  # fmt: skip
        if name == "cvt":
            return given[0] & ((1 << int(op[-2][1:])) - 1)
        if name == "setp":
            return int(COMPARE[op[1]](given[0], given[1]))
        if name == "selp":
            return (given[0] if given[2] else given[1]) & mask
        if name == "shf":  # shf.l.wrap
            return ((given[1] << 32 | given[0]) << (given[2] & 31)) >> 32 & mask
        if name == "bfi":
            field_mask = ((1 << given[3]) - 1) << given[2]
            return given[1] & ~field_mask | given[0] << given[2] & field_mask
        plain: dict[str, Callable[[], int]] = {
            "mov": lambda: given[0],
            "cvta": lambda: given[0],
            "neg": lambda: -given[0],
            "not": lambda: ~given[0],
            "and": lambda: given[0] & given[1],
            "or": lambda: given[0] | given[1],
            "xor": lambda: given[0] ^ given[1],
            "shl": lambda: given[0] << given[1],
            "shr": lambda: given[0] >> given[1],
        }
        return plain[name]() & mask

    def carried(self, op: list[str], given: list[int], bits: int) -> int:
        """Sums, differences and products with a sum, with the flag in (``...c``) and out (``.cc``)."""
        mask = (1 << bits) - 1
        carry = self.carry if op[0].endswith("c") else 0
        if op[0].startswith("sub"):
            total = given[0] - given[1] - carry
        elif op[0].startswith("add"):
            total = given[0] + given[1] + carry
        else:
            product = given[0] * given[1]
            if op[1] == "wide":
                return product + given[2] & (1 << 2 * bits) - 1
            total = (product >> bits if op[1] == "hi" else product & mask) + given[2] + carry
        if "cc" in op:
            self.carry = int(not 0 <= total <= mask)
        return total & mask

    def move_halves(self, operands: list[str]) -> None:
        parts = [x.strip() for x in "".join(x for x in operands if "{" in x).strip("{}").split(",")]
        if "{" in operands[0]:
            word = self.value(operands[1])
            self.registers[parts[0]], self.registers[parts[1]] = word & 0xFFFFFFFF, word >> 32
        else:
            self.registers[operands[0]] = self.value(parts[0]) | self.value(parts[1]) << 32

    def move_memory(self, op: list[str], operands: list[str]) -> None:
        place = operands[op[0] == "ld"].strip("[]")
        if op[1] == "param":
            self.registers[operands[0]] = self.parameters[int(place.rpartition("_")[2])]
            return
        if op[1] == "const":
            declared = re.search(rf"\.const [^;]*\b{place}(?: = (\d+))?;", self.text)
            self.registers[operands[0]] = int((declared and declared[1]) or 0)
            return
        base, _, offset = place.partition("+")
        address, count = self.value(base) + int(offset or 0), int(op[-1][1:]) // 8
        for register in operands[op[0] == "st"].strip("{}").split(","):
            name = register.strip()
            if op[0] == "ld":
                piece = bytes(self.memory[address + i] for i in range(count))
                self.registers[name] = int.from_bytes(piece, "little")
            else:
                word = self.value(name) & ((1 << 8 * count) - 1)
                self.memory.update(enumerate(word.to_bytes(count, "little"), address))
            address += count
