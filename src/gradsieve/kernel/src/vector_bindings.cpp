#include "vector_bindings.hpp"

#include <nanobind/stl/string.h>

#include <chrono>

#include "arrays.hpp"
#include "dispatch.hpp"
#include "float_state.hpp"

using namespace nanobind::literals;

namespace gradsieve {
namespace {

template <class Real>
using Writable = nb::ndarray<Real, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// These take a few microseconds: less than to give the interpreter's lock away and get it back.

template <class Real>
double norm(const Flat<Real>& values) {
    const FloatState state;
    return routines_of<Real>(instruction_set()).norm(values.data(), Index(values.size()));
}

template <class Real>
nb::tuple products(const Flat<Real>& one, const Flat<Real>& other) {
    check_shape("other", other, {Index(one.size())});
    double found[2];
    {
        const FloatState state;
        routines_of<Real>(instruction_set())
            .products(one.data(), other.data(), Index(one.size()), found);
    }
    return nb::make_tuple(found[0], found[1]);
}

template <class Real>
NumPy<Real> propose(double momentum, const Flat<Real>& velocity, double rate,
                    const Flat<Real>& gradient) {
    check_shape("gradient", gradient, {Index(velocity.size())});
    NumPy<Real> out = new_array<Real>({velocity.size()});
    const FloatState state;
    routines_of<Real>(instruction_set())
        .propose(Real(momentum), velocity.data(), Real(rate), gradient.data(),
                 Index(velocity.size()), out.data());
    return out;
}

template <class Real>
bool move(const Writable<Real>& weights, const Flat<Real>& update) {
    check_shape("update", update, {Index(weights.size())});
    const FloatState state;
    return routines_of<Real>(instruction_set())
        .move(weights.data(), update.data(), Index(weights.size()));
}

template <class Real>
void observe(double decay, const Flat<Real>& gradient, const Writable<double>& mean_square) {
    check_shape("mean_square", mean_square, {Index(gradient.size())});
    const FloatState state;
    routines_of<Real>(instruction_set())
        .observe(decay, gradient.data(), Index(gradient.size()), mean_square.data());
}

template <class Real>
NumPy<Real> scaled(const Flat<Real>& gradient, const Flat<double>& mean_square, double weight,
                   double epsilon) {
    check_shape("mean_square", mean_square, {Index(gradient.size())});
    NumPy<Real> out = new_array<Real>({gradient.size()});
    const FloatState state;
    routines_of<Real>(instruction_set())
        .scaled(gradient.data(), mean_square.data(), weight, epsilon, Index(gradient.size()),
                out.data());
    return out;
}

template <class Real>
double measured_peak(double seconds, const std::string& isa) {
    using Clock = std::chrono::steady_clock;
    const Routines<Real>& routines = routines_of<Real>(instruction_set(isa));
    const FloatState state;
    const nb::gil_scoped_release unlocked;
    double best = 0;
    const auto end = Clock::now() + std::chrono::duration<double>(seconds);
    while (Clock::now() < end) {
        const auto start = Clock::now();
        const double operations = routines.fma_flops(20000);
        const std::chrono::duration<double> taken = Clock::now() - start;
        const double rate = operations / taken.count();
        best = rate > best ? rate : best;
    }
    return best;
}

template <class Real>
void bind_vectors_of(nb::module_& module) {
    module.def("norm", norm<Real>, "values"_a.noconvert());
    module.def("products", products<Real>, "one"_a.noconvert(), "other"_a.noconvert());
    module.def("propose", propose<Real>, "momentum"_a, "velocity"_a.noconvert(), "rate"_a,
               "gradient"_a.noconvert());
    module.def("move", move<Real>, "weights"_a.noconvert(), "update"_a.noconvert());
    module.def("observe", observe<Real>, "decay"_a, "gradient"_a.noconvert(),
               "mean_square"_a.noconvert());
    module.def("scaled", scaled<Real>, "gradient"_a.noconvert(), "mean_square"_a.noconvert(),
               "weight"_a, "epsilon"_a);
}

}  // namespace

void bind_vectors(nb::module_& module) {
    bind_vectors_of<float>(module);
    bind_vectors_of<double>(module);
    module.def(
        "fma_peak",
        [](double seconds, bool double_precision, const std::string& isa) {
            return double_precision ? measured_peak<double>(seconds, isa)
                                    : measured_peak<float>(seconds, isa);
        },
        "seconds"_a = 0.05, "double_precision"_a = false, "isa"_a = "");
}

}  // namespace gradsieve
