// Programs of templates (cuzk.filecoin.templates.program): their operations, and what each does to the values of up
// to 64 instances at a time. A bit of all instances is one word, instance i its bit i; so an xor of a SHA-256
// gadget costs an instruction for all of them. Plain C++ that both compilers read: a thread of a GPU takes a word.
#pragma once

#include "dot.hpp"

namespace cuzk {

enum class Op : unsigned char {
  given, given_bits, bits, sum, exclusive_or, conjunction, choose, majority, pick, linear, product, public_input,
};

constexpr int most_lanes = 64;
constexpr int word_bits = 32;      // of the words that `sum` adds
constexpr int most_sum_bits = 64;  // of its result

}  // namespace cuzk

namespace cuzk::CUZK_PATH {

// Literals: 2 * place, or 2 * place + 1 for the negation.
constexpr u64 literal(const u64* bits, u32 x) { return bits[x >> 1] ^ (0 - (u64)(x & 1)); }

constexpr u64 chosen(u64 a, u64 b, u64 c) { return (a & b) | (~a & c); }
constexpr u64 at_least_two(u64 a, u64 b, u64 c) { return (a & (b | c)) | (b & c); }

// total += addend + carry; the carry of this place is returned.
constexpr u64 add_place(u64& total, u64 addend, u64 carry) {
  u64 half = total ^ addend, next = (total & addend) | (half & carry);
  total = half ^ carry;
  return next;
}

// The sum of words of 32 literals, lowest first, modulo 2^width; width at most 64.
constexpr void sum_words(const u64* bits, const u32* literals, int words, u64* total, int width) {
  for (int i = 0; i < width; i++) total[i] = 0;
  for (int k = 0; k < words; k++) {
    u64 carry = 0;
    for (int i = 0; i < width; i++) {
      u64 addend = i < word_bits ? literal(bits, literals[k * word_bits + i]) : 0;
      carry = add_place(total[i], addend, carry);
    }
  }
}

// Bit `lane` of out[i] becomes bit i of a plain value.
constexpr void scatter_bits(const u64* value, int count, int lane, u64* out) {
  for (int i = 0; i < count; i++) {
    out[i] = (out[i] & ~(1ull << lane)) | (value[i / 64] >> (i % 64) & 1) << lane;
  }
}

// Is a value of four words 2^count or more?
constexpr bool has_bit_from(const u64* value, int count) {
  u64 above = 0;
  for (int i = 0; i < 4; i++) {
    int within = count - 64 * i;
    above |= within <= 0 ? value[i] : within < 64 ? value[i] >> within : 0;
  }
  return above != 0;
}

// Of one instance: its field elements (Montgomery), and its bits by lane.
template <class F>
struct Instance {
  const F* fields;
  const u64* bits;
  int lane;

  constexpr bool bit(u32 place) const { return bits[place] >> lane & 1; }
};

// Products of a sum, several of them reduced at once.
template <class F>
class MergedTerms {
 public:
  constexpr void add(const F& value, const F& factor, F& sum) {
    values_[waiting_] = value, factors_[waiting_] = factor;
    if (++waiting_ == merged) sum = sum + dot<merged>(values_, factors_[0].w, 1), waiting_ = 0;
  }
  // The sum with the products that are left.
  constexpr F finish(F sum) const {
    for (int i = 0; i < waiting_; i++) sum = sum + values_[i] * factors_[i];
    return sum;
  }

 private:
  static constexpr int merged = 8;
  F values_[merged], factors_[merged];  // zeros would cost as much as a product
  int waiting_ = 0;
};

// A sum of terms (number of a coefficient, place): a place is 2 * index of a field element or 2 * index + 1 of a bit.
// Coefficients 0 and 1 are +1 and -1.
template <class F>
constexpr F combination(const Instance<F>& at, const u64* coefficients, const u32* pairs, const u32* end) {
  if (end - pairs == 2 && pairs[0] == 0 && !(pairs[1] & 1)) return at.fields[pairs[1] >> 1];
  F sum = F::zero();
  MergedTerms<F> terms;
  for (; pairs != end; pairs += 2) {
    size number = pairs[0];
    u32 index = pairs[1] >> 1;
    if (pairs[1] & 1) {
      if (at.bit(index)) sum = sum + F::from_words(coefficients + number * F::N);
    } else if (number < 2) {
      sum = number ? sum - at.fields[index] : sum + at.fields[index];
    } else {
      terms.add(at.fields[index], F::from_words(coefficients + number * F::N), sum);
    }
  }
  return terms.finish(sum);
}

}  // namespace cuzk::CUZK_PATH
