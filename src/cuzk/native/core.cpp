// The extension module cuzk._core: picks the arithmetic path and gathers the areas' functions. The
// signatures are documented in _core.pyi.
#include <atomic>

#include "bind.hpp"

#ifdef CUZK_HAVE_ADX
#include <cpuid.h>
#endif

namespace cuzk {
namespace {

bool cpu_has_adx() {
#ifdef CUZK_HAVE_ADX
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return false;
  return (b >> 8 & 1) && (b >> 19 & 1);  // BMI2 (mulx) and ADX (adcx, adox)
#else
  return false;
#endif
}

std::atomic<bool> use_adx = cpu_has_adx();

std::vector<std::string> paths() {
  std::vector<std::string> names{"portable"};
  if (cpu_has_adx()) names.insert(names.begin(), "adx");
  return names;
}

void use_path(const std::string& name) {
  if (name == "portable") {
    use_adx = false;
  } else if (name == "adx" && cpu_has_adx()) {
    use_adx = true;
  } else {
    throw std::invalid_argument("arithmetic path: expected " +
                                std::string(cpu_has_adx() ? "adx or portable" : "portable") +
                                " on this CPU, found " + name);
  }
}

std::string compiler() {
#ifdef __clang__
  return "clang++ " __clang_version__;
#else
  return "g++ " __VERSION__;
#endif
}

}  // namespace

bool adx_chosen() { return use_adx; }

}  // namespace cuzk

NB_MODULE(_core, m) {
  using namespace cuzk;
  m.def("paths", &paths);
  m.def("path", [] { return std::string(adx_chosen() ? "adx" : "portable"); });
  m.def("compiler", &compiler);
  m.def("use_path", &use_path, nb::arg("name"));
  bind_vector(m);
  bind_points(m);
  bind_pairing(m);
  bind_records(m);
  bind_setup(m);
  bind_hashes(m);
  bind_serde(m);
  bind_witness(m);
  bind_copier(m);
}
