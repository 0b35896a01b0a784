// SHA-256 (FIPS 180-4) block by block, with everything inside a compression within reach: the schedule, and
// a and e after each round. Messages are 32-bit words. The nodes of tree D and the labels of SDR are digests
// whose two top bits are cleared, so that their 32 bytes, read little-endian, are below 2^254.
//
// Plain C++ that both compilers read. With the CPU's SHA instructions a compression would be four times as
// quick, but they keep a and e to themselves, and all hashes of a 32 GiB sector's proofs take 20 ms so.
#pragma once

#include "word.hpp"

namespace cuzk::CUZK_PATH {

// The first 32 bits of the fractional parts of the cube roots of the first 64 primes, and of the square
// roots of the first 8.
constexpr u32 sha256_k[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};
constexpr u32 sha256_iv[8] = {
    0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
};

constexpr u32 rotated(u32 x, int by) { return x >> by | x << (32 - by); }

// w[0..15] is the block; fills w[16..63].
constexpr void sha256_schedule(u32* w) {
  for (int i = 16; i < 64; i++) {
    u32 s0 = rotated(w[i - 15], 7) ^ rotated(w[i - 15], 18) ^ w[i - 15] >> 3;
    u32 s1 = rotated(w[i - 2], 17) ^ rotated(w[i - 2], 19) ^ w[i - 2] >> 10;
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
}

struct NoRounds {
  constexpr void operator()(int, u32, u32) const {}
};

// One compression: h is replaced by the chaining value after the block. `w` is a whole schedule; `seen` is
// called with each round's number and the new a and e.
template <class Seen = NoRounds>
constexpr void sha256_compress(u32* h, const u32* w, Seen seen = {}) {
  u32 a = h[0], b = h[1], c = h[2], d = h[3], e = h[4], f = h[5], g = h[6], last = h[7];
  for (int i = 0; i < 64; i++) {
    u32 t = last + (rotated(e, 6) ^ rotated(e, 11) ^ rotated(e, 25)) + ((e & f) ^ (~e & g)) + sha256_k[i] + w[i];
    u32 u = (rotated(a, 2) ^ rotated(a, 13) ^ rotated(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    last = g, g = f, f = e, e = d + t;
    d = c, c = b, b = a, a = t + u;
    seen(i, a, e);
  }
  h[0] += a, h[1] += b, h[2] += c, h[3] += d, h[4] += e, h[5] += f, h[6] += g, h[7] += last;
}

constexpr u32 byte_reversed(u32 x) {
  return x << 24 | (x & 0xff00) << 8 | (x >> 8 & 0xff00) | x >> 24;
}

// Eight words of a message from the 32 bytes of a node, held as four little-endian words of 64 bits.
constexpr void node_to_message(const u64* node, u32* w) {
  for (int i = 0; i < 4; i++) {
    w[2 * i] = byte_reversed((u32)node[i]);
    w[2 * i + 1] = byte_reversed((u32)(node[i] >> 32));
  }
}

// The digest as a node, its two top bits cleared.
constexpr void digest_to_node(const u32* h, u64* node) {
  for (int i = 0; i < 4; i++) {
    node[i] = (u64)byte_reversed(h[2 * i + 1]) << 32 | byte_reversed(h[2 * i]);
  }
  node[3] &= ~0ull >> 2;
}

// The chaining value, block by block.
struct Sha256 {
  u32 h[8];

  constexpr Sha256() : h{} {
    for (int i = 0; i < 8; i++) h[i] = sha256_iv[i];
  }
  constexpr void block(const u32* message) {
    u32 w[64] = {};
    for (int i = 0; i < 16; i++) w[i] = message[i];
    sha256_schedule(w);
    sha256_compress(h, w);
  }
};

// What follows `words` words of a message in its last block (or fills one), `words` at most 13 mod 16.
constexpr void sha256_pad(u32* block, int words) {
  block[words % 16] = 0x80000000;
  for (int i = words % 16 + 1; i < 15; i++) block[i] = 0;
  block[15] = 32 * (u32)words;
}

// A node of tree D: `take` is called with each of the two blocks of its message, the children and the padding.
template <class Take>
constexpr void tree_d_blocks(const u64* left, const u64* right, Take take) {
  u32 message[16] = {};
  node_to_message(left, message);
  node_to_message(right, message + 8);
  take(message);
  sha256_pad(message, 16);
  take(message);
}

constexpr void tree_d_node(const u64* left, const u64* right, u64* out) {
  Sha256 hash;
  tree_d_blocks(left, right, [&](const u32* message) { hash.block(message); });
  digest_to_node(hash.h, out);
}

constexpr int label_slots = 37;  // parents in the message of a label, repeated until they fill it
constexpr int drg_degree = 6, all_parents = 14;

// A label: of replica id, layer (from 1), node, and the labels of its parents; layer 1 takes the six of the
// same layer alone, the others those and eight of the layer before. `take` is called with each block.
template <class Take>
constexpr void label_blocks(const u64* replica_id, u32 layer, u64 node, const u64* parents, Take take) {
  u32 message[16] = {};
  node_to_message(replica_id, message);
  message[8] = layer, message[9] = (u32)(node >> 32), message[10] = (u32)node;
  take(message);
  int count = layer == 1 ? drg_degree : all_parents;
  for (int slot = 0; slot < label_slots; slot++) {
    node_to_message(parents + slot % count * 4, message + slot % 2 * 8);
    if (slot % 2) take(message);
  }
  sha256_pad(message, 16 + 8 * label_slots);
  take(message);
}

constexpr void sdr_label(const u64* replica_id, u32 layer, u64 node, const u64* parents, u64* out) {
  Sha256 hash;
  label_blocks(replica_id, layer, node, parents, [&](const u32* message) { hash.block(message); });
  digest_to_node(hash.h, out);
}

}  // namespace cuzk::CUZK_PATH
