// Which build of the arithmetic runs. Each area (vector, points, pairing) has a table of plain function
// pointers per curve; AREA_path.cpp is compiled once per path and fills it, AREA_bind.cpp reads the
// table of the path chosen. Host only.
#pragma once

#include <stdexcept>
#include <string>

namespace cuzk {

enum class CurveId { bn254, bls12_381 };

inline CurveId curve_id(const std::string& name) {
  if (name == "bn254") return CurveId::bn254;
  if (name == "bls12_381") return CurveId::bls12_381;
  throw std::invalid_argument("curve: expected bn254 or bls12_381, found " + name);
}

bool adx_chosen();  // core.cpp

}  // namespace cuzk

// In AREA_bind.cpp: pick `const Ops& name(CurveId)` of the path chosen.
#ifdef CUZK_HAVE_ADX
#define CUZK_DECLARE_OPS(Ops, name)                                    \
  namespace cuzk::portable { const Ops& name(CurveId); }               \
  namespace cuzk::adx { const Ops& name(CurveId); }                    \
  namespace cuzk {                                                     \
  inline const Ops& name(CurveId id) {                                 \
    return adx_chosen() ? adx::name(id) : portable::name(id);          \
  }                                                                    \
  }
#else
#define CUZK_DECLARE_OPS(Ops, name)                                    \
  namespace cuzk::portable { const Ops& name(CurveId); }               \
  namespace cuzk {                                                     \
  inline const Ops& name(CurveId id) { return portable::name(id); }    \
  }
#endif
