// The zcash encodings of BLS12-381's points: big-endian coordinates, c1 before c0, under three flags: bit 7 of the
// first byte compressed, bit 6 infinity, bit 5 the larger root (compressed points, which hold x and that). Host only.
#pragma once

#include <bit>
#include <cstddef>
#include <cstring>

#include "check.hpp"

namespace cuzk::CUZK_PATH {

static_assert(std::endian::native == std::endian::little, "words are read by turning their bytes round");

// A square root in Fp, p = 3 mod 4; false where there is none.
template <class P>
bool square_root(const Field<P>& a, Field<P>& root) {
  root = a * a.pow(P::inverse_sqrt_exponent_plain, P::words);
  return root.squared() == a;
}

// In Fp2: with s^2 = norm(a) and t = (a0 + s) / 2, a root is sqrt(t) + a1 / (2 sqrt(t)) u where t is a
// square; else t' = (a0 - s) / 2 = -a1^2 / 4t is one. Both cases follow from g = t^((p - 3) / 4), as
// (g t)^2 = t and 1 / (g t) = g, or (g t)^2 = -t and 1 / (g t) = -g.
template <class P>
bool square_root(const Fp2<Field<P>>& a, Fp2<Field<P>>& root) {
  using F = Field<P>;
  if (a.c1.is_zero()) {
    F s;
    if (square_root(a.c0, s)) root = {s, F::zero()};
    else root = {F::zero(), s};  // -1 is no square: then s^2 = -a0
    return root.squared() == a;
  }
  F s, half = F::from_words(P::half);
  if (!square_root(a.c0.squared() + a.c1.squared(), s)) return false;
  F t = (a.c0 + s) * half;
  F g = t.pow(P::inverse_sqrt_exponent_plain, P::words), x = g * t;
  F other = a.c1 * g * half;
  if (x.squared() == t) root = {x, other};
  else root = {-other, x};
  return root.squared() == a;
}

// Is y above (p - 1) / 2; in Fp2 the u part decides unless it is zero. The zcash encoding's "sign".
template <class P>
bool is_larger_root(const Field<P>& y) {
  Field<P> plain = y.to_plain();
  u64 borrow = 0;
  for (int i = 0; i < P::words; i++) sub_borrow(P::half_plain[i], plain.w[i], borrow);
  return borrow != 0;
}
template <class P>
bool is_larger_root(const Fp2<Field<P>>& y) {
  return y.c1.is_zero() ? is_larger_root(y.c0) : is_larger_root(y.c1);
}

// Big-endian bytes with the top three bits taken off, below p, into Montgomery form.
template <class P>
bool read_coordinate(const unsigned char* bytes, Field<P>& out) {
  u64 plain[P::words];
  for (int i = 0; i < P::words; i++) {
    u64 word;
    std::memcpy(&word, bytes + 8 * i, 8);
    plain[P::words - 1 - i] = __builtin_bswap64(word);
  }
  out = Field<P>::from_plain(plain);
  return Field<P>::is_canonical(plain);
}
template <class P>
bool read_coordinate(const unsigned char* bytes, Fp2<Field<P>>& out) {
  return read_coordinate(bytes, out.c1) && read_coordinate(bytes + P::words * 8, out.c0);
}

// One compressed point: bit 7 compressed, bit 6 infinity, bit 5 the larger root, then x (in G2 x.c1, x.c0).
template <class F>
const char* decompress_one(const unsigned char* data, const F& b, Affine<F>& out) {
  constexpr int size = F::N * 8;
  unsigned char bytes[size];
  for (int i = 0; i < size; i++) bytes[i] = data[i];
  unsigned flags = bytes[0] >> 5;
  bytes[0] &= 0x1f;
  if (!(flags & 4)) return "the flag of a compressed point is not set";
  if (flags & 2) {
    unsigned any = flags & 1;
    for (unsigned char byte : bytes) any |= byte;
    out = Affine<F>::infinity();
    return any ? "infinity with further bits set" : nullptr;
  }
  if (!read_coordinate(bytes, out.x)) return "a coordinate is not below p";
  if (!square_root(out.x.squared() * out.x + b, out.y)) return "x is not on the curve";
  if (is_larger_root(out.y) != static_cast<bool>(flags & 1)) out.y = -out.y;
  return nullptr;
}

// One uncompressed point: the same flags, of which only infinity's may be set, then x and y.
template <class F>
const char* read_uncompressed(const unsigned char* data, Affine<F>& out) {
  constexpr int size = F::N * 8;
  unsigned char bytes[2 * size];
  std::memcpy(bytes, data, sizeof(bytes));
  unsigned flags = bytes[0] >> 5;
  bytes[0] &= 0x1f;
  if (flags & 4) return "the flag of a compressed point is set";
  if (flags & 1) return "the sign flag belongs to compressed points only";
  if (flags & 2 || bytes[2 * size - 1] == 0) {  // of 256 points one with no flag gets here
    unsigned any = 0;
    for (unsigned char byte : bytes) any |= byte;
    if (flags & 2 || !any) {
      out = Affine<F>::infinity();
      if (any) return "infinity with further bits set";
      return flags & 2 ? nullptr : "x = y = 0 without the flag of infinity";
    }
  }
  return read_coordinate(bytes, out.x) && read_coordinate(bytes + size, out.y) ? nullptr
                                                                              : "a coordinate is not below p";
}

// Into words, Montgomery, affine.
template <class F>
void store_point(const Affine<F>& point, u64* words) {
  auto put = [&](const auto& c) {
    for (u64 word : c.w) *words++ = word;
  };
  if constexpr (requires { point.x.c0; }) {
    put(point.x.c0), put(point.x.c1), put(point.y.c0), put(point.y.c1);
  } else {
    put(point.x), put(point.y);
  }
}

// out[i] for every good encoding; what lies at and after the first bad one is unspecified.
template <class F>
BadPoint decompress(const unsigned char* data, std::size_t n, u64* out, const F& b, int threads) {
  return first_failure(n, threads, 16, [=](std::size_t i) {
    Affine<F> point;
    const char* reason = decompress_one<F>(data + i * F::N * 8, b, point);
    if (reason == nullptr) store_point(point, out + i * Affine<F>::N);
    return reason;
  });
}

// Likewise; nothing is asked about the curve.
template <class F>
BadPoint decode_uncompressed(const unsigned char* data, std::size_t n, u64* out, int threads) {
  return first_failure(n, threads, 1024, [=](std::size_t i) {
    Affine<F> point;
    const char* reason = read_uncompressed<F>(data + i * 2 * F::N * 8, point);
    if (reason == nullptr) store_point(point, out + i * Affine<F>::N);
    return reason;
  });
}

}  // namespace cuzk::CUZK_PATH
