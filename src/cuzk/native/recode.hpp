// Scalars as signed digits, least significant first: scalar = sum digits[i] * 2^(i * step).
#pragma once

#include "word.hpp"

namespace cuzk::CUZK_PATH {

// Bits [at, at + width) of a little-endian number of `words` words; width <= 32.
constexpr u32 bits_at(const u64* number, int words, int at, int width) {
  int word = at / 64, shift = at % 64;
  if (word >= words) return 0;
  u64 value = number[word] >> shift;
  if (shift + width > 64 && word + 1 < words) value |= number[word + 1] << (64 - shift);
  return (u32)(value & ((1ull << width) - 1));
}

constexpr int bit_length(const u64* number, int words) {
  for (int i = words - 1; i >= 0; i--)
    if (number[i] != 0) return 64 * i + 64 - leading_zeros(number[i]);
  return 0;
}

// |s| and whether s stands for -|s|.
template <class Fr>
constexpr bool fold_scalar(const u64* s, u64* out) {
  u64 borrow = 0;
  for (int i = 0; i < 4; i++) sub_borrow(Fr::P::half_plain[i], s[i], borrow);
  bool negative = borrow != 0;
  u64 back = 0;
  for (int i = 0; i < 4; i++) out[i] = negative ? sub_borrow(Fr::P::modulus[i], s[i], back) : s[i];
  return negative;
}

// Windows that hold a number of `bits` bits in digits of [-2^(width-1), 2^(width-1)]: the bit above the
// number takes the last carry.
constexpr int signed_windows(int bits, int width) { return (bits + width) / width; }

// One digit per window of `width` bits.
template <class Digit>
constexpr void signed_digits(const u64* number, int words, int width, int windows, Digit* digits) {
  int carry = 0, half = 1 << (width - 1);
  for (int i = 0; i < windows; i++) {
    int digit = (int)bits_at(number, words, i * width, width) + carry;
    carry = digit > half;
    digits[i] = (Digit)(carry ? digit - 2 * half : digit);
  }
}

// Width-w non-adjacent form, one digit per bit: odd digits below 2^(width-1) in absolute value, at least
// width - 1 zeros between them. `digits` holds 64 * words + 1; returns how many are used.
template <int words>
constexpr int non_adjacent_form(const u64* number, int width, signed char* digits) {
  int length = bit_length(number, words), used = 0, carry = 0;
  for (int i = 0; i <= 64 * words; i++) digits[i] = 0;
  for (int i = 0; i < length || carry != 0;) {
    if (((bits_at(number, words, i, 1) + carry) & 1) == 0) {
      i++;
      continue;
    }
    int digit = (int)bits_at(number, words, i, width) + carry;
    carry = digit >> (width - 1) & 1;
    digits[i] = (signed char)(digit - (carry << width));
    used = i + 1;
    i += width;
  }
  return used;
}

}  // namespace cuzk::CUZK_PATH
