"""What a circuit takes of each memory: from sizes before it is open, from the Prover afterwards.

    host      key: its file, mapped, copied or converted; matrices, but those that are evaluated
              from templates: of them a GPU's key takes the largest while it is loaded
              a proof: four vectors over the domain and the witness; with a GPU the witness alone
              a proof that is staged ahead (on a GPU with one lane): the witness
    cuda:N    key: points, matrices, maps, tables of transforms; a proof: vectors, the longest sum. A GPU with less
              memory than that is shared out otherwise (cuzk.backends.cuda.memory): a key may take all of it
    pinned    a proof on a GPU: its witness, whose pages are locked, and the buffers that other arrays are copied
              through; key: points that stay in the host's memory

A process's own memory (interpreter, libraries: :data:`cuzk.prover.plan.PROCESS_BYTES`) is nobody's key and is not in
here. Points that a GPU has no room for stay in the host's memory, where the key's file counts in any case.
"""

from __future__ import annotations

from cuzk.backends import Workload
from cuzk.catalogue.key_facts import KeyFacts
from cuzk.engine.catalogue import Needs
from cuzk.prover.standing import Standing

WORKING_BYTES = 16 << 20
"""Of a proof in work: buckets and what numpy makes on the way. Measured: 4 to 13 MB from 2^12 to 2^15 rows on both
curves, five proofs one after the other (x86-64, 2 threads)."""
PINNED_BYTES = 2 * (64 << 20)
"""Staging buffers of a GPU's lane: of its two streams, each the largest (cuzk.backends.cuda.staging)."""
PIECES_BYTES = 48 << 20
"""On a GPU: sums that as many threads as the largest one holds have in work, and what is small."""
TERM_BYTES = 8
ROW_BYTES = 8
CONVERTING_BYTES = 12 << 20
"""The mapped pages of a key's file that its points are converted from at a time."""
WIRES_A_BYTE = 9
"""Of the places of templates that matrices are evaluated from: Filecoin's circuits have 9.2 to 17.6 wires a byte."""
HIGHEST_VALUES = 1 << 16
"""Entries of a dictionary of coefficients that are reckoned with: circuits have hundreds."""


def estimate(facts: KeyFacts, device: str) -> Needs:
    """For "cpu" or "cuda:N"; at least what it will be, but for a dictionary of more coefficients than any has."""
    element = 8 * facts.curve.fr_words
    wires = element * facts.wires
    vectors = element * (4 << facts.log_domain)
    key = {
        "host": facts.file_bytes
        + (min(CONVERTING_BYTES, facts.file_bytes) if facts.converted else 0)
        + _matrices_host(facts)
    }
    if not device.startswith("cuda"):
        return Needs(key, {"host": vectors + wires + WORKING_BYTES})
    stays, proof = _on_gpu(facts)
    if facts.evaluated:
        key["host"] += _written_out(facts)
    host = {"host": wires + WORKING_BYTES, "pinned": wires + PINNED_BYTES}
    return Needs({**key, device: stays}, {**host, device: proof})


def measured(standing: Standing) -> Needs:
    """Of an open Prover."""
    key = {"host": standing.key_host}
    proof = {"host": standing.proof_host + WORKING_BYTES}
    if standing.device.startswith("cuda"):
        key[standing.device] = standing.key_device
        proof["pinned"] = standing.proof_host + PINNED_BYTES
        proof[standing.device] = standing.proof_device
        if standing.streamed:
            key["pinned"] = standing.streamed
    return Needs(key, proof)


def ahead(standing: Standing) -> dict[str, int]:
    """Of a partition that is staged: the witness, whose pages are locked in its proof only. Nothing is staged on a CPU,
    whose cores a proof has all of, nor beside other lanes, whose host parts are made while one of them computes."""
    if not standing.device.startswith("cuda") or standing.lanes > 1:
        return {}
    return {"host": standing.proof_host}


def tier(standing: Standing) -> str:
    """ "hot" where no points have to be copied for a proof."""
    return "warm" if standing.streamed else "hot"


def _matrices_host(facts: KeyFacts) -> int:
    """A .zkey's dictionary has room in the section of the file that is let go of when it is read."""
    if facts.evaluated:
        return facts.wires // WIRES_A_BYTE
    own, beside = _matrices(facts)
    rows = (1 << facts.log_domain) + 1
    terms = TERM_BYTES * (facts.own_terms + facts.circuit_terms)
    return terms + ROW_BYTES * rows * (own + beside) + facts.circuit_bytes


def _written_out(facts: KeyFacts) -> int:
    """The largest of three matrices, which a GPU gets one after the other: A, with four of five terms at most."""
    return TERM_BYTES * facts.circuit_terms * 4 // 5 + ROW_BYTES * ((1 << facts.log_domain) + 1)


def _matrices(facts: KeyFacts) -> tuple[int, int]:
    """How many are in the key, and beside it."""
    return 2 if facts.own_terms else 0, 3 if facts.circuit_terms else 0


def _on_gpu(facts: KeyFacts) -> tuple[int, int]:
    """What stays, and a proof's, where nothing has to give way."""
    from cuzk.backends.cuda.memory import untroubled
    from cuzk.backends.cuda.windows import WindowPlan, choose_plan, group_cost

    curve, rows = facts.curve, 1 << facts.log_domain
    terms = facts.circuit_terms or facts.own_terms
    count = 3 if facts.circuit_terms else 2
    each = (rows, -(-terms // count), min(HIGHEST_VALUES, -(-terms // count)))
    work = Workload(facts.log_domain, facts.wires, (each,) * count, facts.queries)

    def sum_bytes(group: str, n: int, plan: WindowPlan | None) -> int:
        """Entries of 8 bytes, as much again or 14 while they are sorted; buckets and, at most as many, pieces."""
        plan = plan or choose_plan(n, curve, group_cost(curve, "g1"))
        entries = n * plan.windows
        buckets = 2 * plan.total_buckets * 16 * curve.point_words(group)
        sums = 8 * entries + max(14 * entries + 8 * plan.total_buckets, 8 * entries + buckets)
        return sums + PIECES_BYTES

    return untroubled(curve, work, sum_bytes)
