// The Python side of the simple recurrent layer of scan.hpp.
//
// Arrays come as addresses, 0 for none; gradsieve.torch.kernel_bridge, the only caller, has checked
// their shapes and dtypes and keeps them alive.
#include <cstdint>
#include <stdexcept>
#include <string>

#include "float_state.hpp"
#include "scan_access.hpp"
#include "scan_bindings.hpp"

namespace gradsieve {
namespace {

namespace nb = nanobind;
using namespace nb::literals;
using Address = std::uintptr_t;

template <class Real>
Real* array(const char* name, Address address, bool needed = true) {
    if (needed && address == 0)
        throw std::invalid_argument(std::string(name) + " has no memory");
    return reinterpret_cast<Real*>(address);
}

void check_sizes(Index T, Index B, Index I, Index H) {
    if (T < 1 || B < 1 || I < 1 || H < 1)
        throw std::invalid_argument("T, B, I and H must be at least 1");
}

template <class Real>
void tanh_deltas(Index T, Index B, Index H, Address z, Address W, Address gamma, Address last,
                 Address delta, Address exponents) {
    check_sizes(T, B, 1, H);
    const TanhDeltas<Real> at{T, B, H,
                              array<const Real>("z", z),
                              array<const Real>("W", W),
                              array<const Real>("gamma", gamma),
                              array<const std::int64_t>("last", last),
                              array<Real>("delta", delta),
                              array<std::int32_t>("exponents", exponents)};
    const nb::gil_scoped_release unlocked;
    const FloatState state;
    Scratch<Real> scratch(scans<Real>().tanh_change_scratch(B, 1, H), false);
    scans<Real>().tanh_deltas(at, scratch.data());
}

template <class Real>
void tanh_change(Index T, Index B, Index I, Index H, Address u, Address z, Address initial,
                 Address W, Address dW_in, Address dW, Address db, Address delta, Address exponents,
                 Address da, Address change) {
    check_sizes(T, B, I, H);
    const TanhChange<Real> at{T, B, I, H,
                              array<const Real>("u", u),
                              array<const Real>("z", z),
                              array<const Real>("initial", initial, false),
                              array<const Real>("W", W),
                              array<const Real>("dW_in", dW_in),
                              array<const Real>("dW", dW),
                              array<const Real>("db", db, false),
                              array<const Real>("delta", delta),
                              array<const std::int32_t>("exponents", exponents),
                              array<Real>("da", da),
                              array<Real>("change", change)};
    const nb::gil_scoped_release unlocked;
    const FloatState state;
    Scratch<Real> scratch(scans<Real>().tanh_change_scratch(B, I, H), false);
    scans<Real>().tanh_change(at, scratch.data());
}

}  // namespace

void bind_tanh(nb::module_& module) {
    module.def("tanh_deltas32", tanh_deltas<float>);
    module.def("tanh_deltas64", tanh_deltas<double>);
    module.def("tanh_change32", tanh_change<float>);
    module.def("tanh_change64", tanh_change<double>);
}

}  // namespace gradsieve
