"""ChaCha's key stream, many blocks at a time, with 8 or 20 rounds.

A block's 16 words are a constant, the key (8 words), and four more words. rand_chacha, which makes the graph's
parents, takes those as a block counter of 64 bits and a stream number; the cipher of RFC 8439, which makes
synthetic challenges, as a counter of 32 bits and a nonce. Words are little-endian in bytes, and a u64 that
rand_chacha gives is two words, the lower one first.

Reference: Bernstein, "ChaCha, a variant of Salsa20", 2008; RFC 8439.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Words32 = NDArray[np.uint32]

WORDS = 16
CONSTANT = np.frombuffer(b"expand 32-byte k", dtype="<u4")
COLUMNS = tuple((i, 4 + i, 8 + i, 12 + i) for i in range(4))
DIAGONALS = tuple((i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4) for i in range(4))


def blocks(keys: Words32, counters: Words32, rounds: int) -> Words32:
    """(n, 16) words of n blocks with keys (n, 8) and counters, four words each (n, 4)."""
    n = len(keys)
    start = np.empty((WORDS, n), dtype=np.uint32)
    start[:4], start[4:12], start[12:] = CONSTANT[:, None], keys.T, counters.T
    state = start.copy()
    for _ in range(rounds // 2):
        for a, b, c, d in (*COLUMNS, *DIAGONALS):
            _quarter(state, a, b, c, d)
    return np.ascontiguousarray((state + start).T)


def _quarter(state: Words32, a: int, b: int, c: int, d: int) -> None:
    for x, y, z, left in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
        state[x] += state[y]
        mixed = state[z] ^ state[x]
        state[z] = mixed << np.uint32(left) | mixed >> np.uint32(32 - left)


def cipher_blocks(key: bytes, nonce: bytes, numbers: NDArray[np.integer]) -> Words32:
    """(n, 16) words: the blocks of ChaCha20 (RFC 8439) with these numbers, counted from 0."""
    counters = np.empty((len(numbers), 4), dtype=np.uint32)
    counters[:, 0], counters[:, 1:] = numbers, np.frombuffer(nonce, dtype="<u4")
    keys = np.broadcast_to(np.frombuffer(key, dtype="<u4"), (len(numbers), 8))
    return blocks(keys, counters, 20)
