// Inner loops of the file readers: a dictionary of 32-byte values, and the walk over the linear
// combinations of an .r1cs section 2:
//
//   constraint = A, B, C;  each: u32 terms, then terms times (u32 wire, 32 bytes coefficient, plain)
//
// Nothing is read beyond the bytes given, whatever the counts in them say. Host only.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "curve_constants.hpp"

namespace cuzk {

static_assert(std::endian::native == std::endian::little, "the files and arrays are little-endian");

using Value = std::array<u64, 4>;

// Numbers distinct values in the order of their first use. Open addressing over a hash keyed anew for each
// dictionary, so that no file can be written to make its values collide.
class Dictionary {
 public:
  Dictionary() : slots_(1024, 0) {
    std::random_device device;
    for (u64& key : keys_) key = (u64)device() << 32 | device();
    mix_ |= 1;
  }

  std::uint32_t number(const Value& value) {
    if (!values_.empty() && values_[last_] == value) return last_;
    std::size_t mask = slots_.size() - 1, slot = hash(value) & mask;
    for (; slots_[slot] != 0; slot = (slot + 1) & mask)
      if (values_[slots_[slot] - 1] == value) return last_ = slots_[slot] - 1;
    if (values_.size() >= 0xfffffffeu) throw std::invalid_argument("more than 2^32 - 2 distinct values");
    values_.push_back(value);
    slots_[slot] = static_cast<std::uint32_t>(values_.size());
    last_ = slots_[slot] - 1;
    if (values_.size() * 2 > slots_.size()) grow();
    return last_;
  }

  const std::vector<Value>& values() const { return values_; }

 private:
  // NH: a sum of products of keyed words; two different values meet with probability 2^-64.
  std::size_t hash(const Value& v) const {
    unsigned __int128 sum = (unsigned __int128)(v[0] + keys_[0]) * (v[1] + keys_[1]) +
                            (unsigned __int128)(v[2] + keys_[2]) * (v[3] + keys_[3]);
    u64 folded = ((u64)sum ^ (u64)(sum >> 64)) * mix_;
    return static_cast<std::size_t>(folded ^ folded >> 32);
  }

  void grow() {
    std::vector<std::uint32_t> wider(slots_.size() * 2, 0);
    std::size_t mask = wider.size() - 1;
    for (std::uint32_t number : slots_) {
      if (number == 0) continue;
      std::size_t slot = hash(values_[number - 1]) & mask;
      while (wider[slot] != 0) slot = (slot + 1) & mask;
      wider[slot] = number;
    }
    slots_.swap(wider);
  }

  std::array<u64, 5> keys_{};
  u64& mix_ = keys_[4];
  std::vector<std::uint32_t> slots_;  // number + 1 of a value; 0 is free
  std::vector<Value> values_;
  std::uint32_t last_ = 0;
};

inline Value value_at(const std::uint8_t* at) {
  Value v;
  std::memcpy(v.data(), at, sizeof v);
  return v;
}
inline std::uint32_t u32_at(const std::uint8_t* at) {
  std::uint32_t v;
  std::memcpy(&v, at, sizeof v);
  return v;
}

inline bool is_zero(const Value& v) { return (v[0] | v[1] | v[2] | v[3]) == 0; }
inline bool below(const Value& v, const u64* modulus) {
  for (int i = 3; i >= 0; i--)
    if (v[i] != modulus[i]) return v[i] < modulus[i];
  return false;
}

constexpr std::size_t kTermBytes = 4 + 32;

// Calls row(matrix, constraint) after the terms of each linear combination and term(matrix, wire, value)
// for each term whose coefficient is not zero.
template <class Term, class Row>
void walk_constraints(const std::uint8_t* data, std::size_t bytes, std::size_t constraints,
                      std::size_t wires, const u64* modulus, Term term, Row row) {
  std::size_t at = 0;
  auto refuse = [&](std::size_t i, int m, const std::string& what) {
    throw std::invalid_argument("constraint " + std::to_string(i) + ", " + "ABC"[m] + ": " + what);
  };
  for (std::size_t i = 0; i < constraints; i++) {
    for (int m = 0; m < 3; m++) {
      if (bytes - at < 4) refuse(i, m, "the section ends at byte " + std::to_string(bytes));
      std::size_t terms = u32_at(data + at);
      at += 4;
      if (terms > (bytes - at) / kTermBytes)
        refuse(i, m, std::to_string(terms) + " terms of " + std::to_string(kTermBytes) +
                         " bytes, but the section has " + std::to_string(bytes - at) + " bytes left");
      for (std::size_t t = 0; t < terms; t++, at += kTermBytes) {
        std::uint32_t wire = u32_at(data + at);
        Value value = value_at(data + at + 4);
        if (wire >= wires)
          refuse(i, m, "wire " + std::to_string(wire) + " of " + std::to_string(wires));
        if (!below(value, modulus))
          refuse(i, m, "coefficient of wire " + std::to_string(wire) + " is not below the prime");
        if (!is_zero(value)) term(m, wire, value);
      }
      row(m, i);
    }
  }
  if (at != bytes)
    throw std::invalid_argument(std::to_string(constraints) + " constraints end at byte " +
                                std::to_string(at) + " of " + std::to_string(bytes));
}

}  // namespace cuzk
