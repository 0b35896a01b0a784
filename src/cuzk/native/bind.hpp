// What every bind_*.cpp needs: array arguments whose shapes are checked before a pointer is taken.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <string>

#include "curve_constants.hpp"
#include "path.hpp"

namespace nb = nanobind;

namespace cuzk {

// (n, width) uint64, C-contiguous, on the CPU; "In" may be read-only, "Out" may not.
using In64 = nb::ndarray<const std::uint64_t, nb::c_contig, nb::device::cpu>;
using Out64 = nb::ndarray<std::uint64_t, nb::c_contig, nb::device::cpu>;
using In32 = nb::ndarray<const std::uint32_t, nb::c_contig, nb::device::cpu>;
using In16 = nb::ndarray<const std::uint16_t, nb::c_contig, nb::device::cpu>;
using Out32 = nb::ndarray<std::uint32_t, nb::c_contig, nb::device::cpu>;
using InBytes = nb::ndarray<const std::uint8_t, nb::c_contig, nb::device::cpu>;
using OutBytes = nb::ndarray<std::uint8_t, nb::c_contig, nb::device::cpu>;

// An array is taken as it is or refused: a converted copy would cost memory, and take what is written to it away.
inline auto array_arg(const char* name) {
  return nb::arg(name).noconvert();
}

// Rows of a (n, width) array, or ValueError.
template <class Array>
std::size_t rows_of(const Array& array, std::size_t width, const char* what) {
  if (array.ndim() != 2 || array.shape(1) != width)
    throw std::invalid_argument(std::string(what) + ": expected shape (n, " + std::to_string(width) + ")");
  return array.shape(0);
}

template <class Array>
void expect_rows(const Array& array, std::size_t rows, std::size_t width, const char* what) {
  std::size_t found = rows_of(array, width, what);
  if (found != rows)
    throw std::invalid_argument(std::string(what) + ": expected " + std::to_string(rows) + " rows, found " +
                                std::to_string(found));
}

template <class Array>
std::size_t length_of(const Array& array, const char* what) {
  if (array.ndim() != 1) throw std::invalid_argument(std::string(what) + ": expected one dimension");
  return array.shape(0);
}

template <class Array>
auto words(const Array& array) {
  return reinterpret_cast<const u64*>(array.data());
}
inline u64* words_out(const Out64& array) { return reinterpret_cast<u64*>(array.data()); }

inline bool is_fp(const std::string& field) {
  if (field == "fp") return true;
  if (field == "fr") return false;
  throw std::invalid_argument("field: expected fp or fr, found " + field);
}
inline bool is_g2(const std::string& group) {
  if (group == "g2") return true;
  if (group == "g1") return false;
  throw std::invalid_argument("group: expected g1 or g2, found " + group);
}
inline std::size_t fp_words(CurveId id) { return id == CurveId::bn254 ? 4 : 6; }
inline std::size_t point_words(CurveId id, bool g2) { return fp_words(id) * (g2 ? 4 : 2); }

// Where an output may share memory with an input: not at all, or only as one and the same array.
template <class Array>
bool overlaps(const Out64& out, const Array& in) {
  auto first = reinterpret_cast<std::uintptr_t>(out.data()), other = reinterpret_cast<std::uintptr_t>(in.data());
  return first < other + in.nbytes() && other < first + out.nbytes();
}
template <class Array>
void expect_apart(const Out64& out, const Array& in, const char* what) {
  if (overlaps(out, in)) throw std::invalid_argument(std::string("out: shares memory with ") + what);
}
inline void expect_apart_or_same(const Out64& out, const In64& in, const char* what) {
  if (overlaps(out, in) && words(out) != words(in))
    throw std::invalid_argument(std::string("out: shares part of its memory with ") + what);
}

using NoGil = nb::gil_scoped_release;

void bind_vector(nb::module_&);
void bind_points(nb::module_&);
void bind_pairing(nb::module_&);
void bind_records(nb::module_&);
void bind_setup(nb::module_&);
void bind_hashes(nb::module_&);
void bind_serde(nb::module_&);
void bind_witness(nb::module_&);
void bind_copier(nb::module_&);

}  // namespace cuzk
