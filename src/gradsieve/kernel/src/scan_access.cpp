#include "scan_access.hpp"

#include <string>

#include "dispatch.hpp"

namespace gradsieve {

#if defined(__x86_64__)
namespace avx512 {
extern const ScanSet scan_set;
}
namespace avx2 {
extern const ScanSet scan_set;
}
#endif
namespace baseline {
extern const ScanSet scan_set;
}

const ScanSet& scan_set() {
    const std::string name = instruction_set().name;
#if defined(__x86_64__)
    if (name == "avx512") return avx512::scan_set;
    if (name == "avx2") return avx2::scan_set;
#endif
    return baseline::scan_set;
}

}  // namespace gradsieve
