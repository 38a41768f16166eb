// The Python side of the kernel: checks every array, then works without the interpreter's lock.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "arrays.hpp"
#include "pool.hpp"
#include "recurrent_bindings.hpp"
#include "linearised_bindings.hpp"
#include "vector_bindings.hpp"
#include "workspace.hpp"

using namespace nanobind::literals;

namespace gradsieve {
namespace {

template <class Real>
using InputArray = nb::ndarray<const Real, nb::ndim<3>, nb::device::cpu>;
using TargetArray = nb::ndarray<nb::ro, nb::device::cpu>;
using Starts = std::optional<Flat<std::int64_t>>;

void check_sizes(const Sizes& sizes) {
    if (sizes.T < 1 || sizes.B < 1 || sizes.I < 1 || sizes.H < 1 || sizes.O < 1)
        throw std::invalid_argument("sizes (T, B, I, H, O) are " +
                                    text({sizes.T, sizes.B, sizes.I, sizes.H, sizes.O}) +
                                    "; each must be at least 1");
    constexpr Index most = Index(1) << 31;
    if (sizes.T >= most || sizes.B >= most || sizes.I >= most / 2 || sizes.H >= most / 2 ||
        sizes.O >= most)
        throw std::bad_alloc();
}

template <class Real>
Inputs<Real> checked_inputs(const InputArray<Real>& u, const Sizes& sizes) {
    check_shape("u", u, {sizes.T, sizes.B, sizes.I});
    return {u.data(), Index(u.stride(0)), Index(u.stride(1)), Index(u.stride(2))};
}

const std::int64_t* checked_starts(const Starts& starts, const Sizes& sizes) {
    if (!starts) return nullptr;
    check_shape("starts", *starts, {sizes.B});
    for (Index b = 0; b < sizes.B; ++b)
        if (starts->data()[b] < 0 || starts->data()[b] >= sizes.T)
            throw std::invalid_argument("starts holds " + std::to_string(starts->data()[b]) +
                                        "; it must lie in 0 … " + std::to_string(sizes.T - 1));
    return starts->data();
}

// Fills the targets of a batch: int64 classes for softmax, values of the network's type otherwise.
template <class Real>
void check_targets(const TargetArray& t, const Memory<Real>& m, Batch<Real>& batch) {
    const bool right_type =
        m.softmax ? t.dtype() == nb::dtype<std::int64_t>() : t.dtype() == nb::dtype<Real>();
    if (!right_type)
        throw nb::type_error(m.softmax ? "t must hold int64 classes"
                                       : "t must hold values of the network's dtype");
    if (m.softmax && m.per_step)
        check_shape("t", t, {m.T, m.B});
    else if (m.softmax)
        check_shape("t", t, {m.B});
    else if (m.per_step)
        check_shape("t", t, {m.T, m.B, m.O});
    else
        check_shape("t", t, {m.B, m.O});
    const std::size_t first = m.per_step ? 1 : 0;
    batch.step_n = m.per_step ? Index(t.stride(0)) : 0;
    batch.step_b = Index(t.stride(first));
    if (!m.softmax) {
        batch.step_o = Index(t.stride(first + 1));
        batch.values = static_cast<const Real*>(t.data());
        return;
    }
    batch.classes = static_cast<const std::int64_t*>(t.data());
    for (Index n = 0; n < (m.per_step ? m.T : 1); ++n)
        for (Index b = 0; b < m.B; ++b) {
            const std::int64_t target = batch.classes[n * batch.step_n + b * batch.step_b];
            if (target < 0 || target >= m.O)
                throw std::invalid_argument("t holds class " + std::to_string(target) +
                                            "; it must lie in 0 … " + std::to_string(m.O - 1));
        }
}

template <class Real>
double backpropagate(Workspace<Real>& workspace, const Flat<Real>& theta, const InputArray<Real>& u,
                     const TargetArray& t, const Starts& starts) {
    const Sizes& sizes = workspace.sizes();
    check_shape("theta", theta, {sizes.weights()});
    Batch<Real> batch{};
    batch.u = checked_inputs<Real>(u, sizes);
    batch.starts = checked_starts(starts, sizes);
    check_targets(t, workspace.memory(), batch);
    const nb::gil_scoped_release unlocked;
    return workspace.backpropagate(theta.data(), batch);
}

template <class Real>
nb::tuple norms(Workspace<Real>& workspace, const std::optional<Flat<Real>>& update, Index h,
                bool full) {
    if (update) check_shape("update", *update, {workspace.sizes().weights()});
    Sums sums{};
    {
        const nb::gil_scoped_release unlocked;
        sums = workspace.norms(update ? update->data() : nullptr, h, full);
    }
    const Memory<Real>& m = workspace.memory();
    return nb::make_tuple(sums.near_norm, sums.near_slope, sums.far_norm, sums.far_slope,
                          sums.far_square, sums.far_product, m.exponents[m.T - 1],
                          m.exponents[m.T - h - 1]);
}

template <class Real>
NumPy<Real> norm_gradient(Workspace<Real>& workspace, Index h, bool of_Q, bool full) {
    NumPy<Real> out = new_array<Real>({std::size_t(workspace.sizes().weights())});
    const nb::gil_scoped_release unlocked;
    workspace.norm_gradient(h, of_Q, full, out.data());
    return out;
}

template <class Real>
double slow_factor(Workspace<Real>& workspace, Index h, Index steps) {
    const nb::gil_scoped_release unlocked;
    return workspace.slow_factor(h, steps, nullptr);
}

template <class Real>
NumPy<Real> slow_gradient(Workspace<Real>& workspace, Index h, Index steps) {
    NumPy<Real> out = new_array<Real>({std::size_t(workspace.sizes().weights())});
    std::fill_n(out.data(), out.size(), Real(0));  // of a Q that is not finite
    const nb::gil_scoped_release unlocked;
    (void)workspace.slow_factor(h, steps, out.data());
    return out;
}

template <class Real>
NumPy<double> example_products(Workspace<Real>& workspace, const Flat<Real>& direction) {
    check_shape("direction", direction, {workspace.sizes().weights()});
    NumPy<double> out = new_array<double>({std::size_t(workspace.sizes().B)});
    const nb::gil_scoped_release unlocked;
    workspace.example_products(direction.data(), out.data());
    return out;
}

template <class Real>
NumPy<Real> predict_array(const Flat<Real>& theta, const InputArray<Real>& u, const Starts& starts,
                          Index H, Index O, bool softmax, bool per_step, const std::string& isa) {
    const Sizes sizes{Index(u.shape(0)), Index(u.shape(1)), Index(u.shape(2)), H, O};
    check_sizes(sizes);
    check_shape("theta", theta, {sizes.weights()});
    Batch<Real> batch{};
    batch.u = checked_inputs<Real>(u, sizes);
    batch.starts = checked_starts(starts, sizes);
    NumPy<Real> out =
        per_step ? new_array<Real>({std::size_t(sizes.T), std::size_t(sizes.B), std::size_t(O)})
                 : new_array<Real>({std::size_t(sizes.B), std::size_t(O)});
    const nb::gil_scoped_release unlocked;
    predict<Real>(sizes, softmax, theta.data(), batch, per_step, isa, out.data());
    return out;
}

// A view of a workspace's memory that keeps the workspace alive.
template <class Value>
nb::object view(nb::handle owner, Value* data, std::initializer_list<std::size_t> shape,
                std::initializer_list<std::int64_t> strides) {
    return nb::cast(nb::ndarray<nb::numpy, Value>(data, shape, owner, strides));
}

template <class Real>
nb::object views(nb::handle self, const std::string& name) {
    const Memory<Real>& m = nb::cast<Workspace<Real>&>(self).memory();
    const std::size_t T = m.T, B = m.B, H = m.H, O = m.O;
    const std::size_t weights = nb::cast<Workspace<Real>&>(self).sizes().weights();
    if (name == "theta") return view<const Real>(self, m.theta, {weights}, {1});
    if (name == "gradient") return view<Real>(self, m.gradient, {weights}, {1});
    if (name == "exponents") return view<const std::int64_t>(self, m.exponents, {T}, {1});
    if (name == "states")
        return view<const Real>(self, m.z, {T + 1, B, H}, {m.B * m.ld_z, m.ld_z, 1});
    if (name == "slopes" || name == "scaled_deltas")
        return view<const Real>(self, name == "slopes" ? m.slopes : m.deltas, {T, B, H},
                                {m.B * m.ld_h, m.ld_h, 1});
    if (name == "outputs" || name == "errors") {
        const Real* data = name == "outputs" ? m.outputs : m.errors;
        if (m.per_step) return view<const Real>(self, data, {T, B, O}, {m.B * m.ld_o, m.ld_o, 1});
        return view<const Real>(self, data, {B, O}, {m.ld_o, 1});
    }
    throw std::invalid_argument("there is no array named '" + name + "'");
}

template <class Real>
void bind_workspace(nb::module_& module, const char* name) {
    using Space = Workspace<Real>;
    nb::class_<Space>(module, name)
        .def(
            "__init__",
            [](Space* self, Index T, Index B, Index I, Index H, Index O, bool softmax,
               bool per_step, const std::string& isa) {
                const Sizes sizes{T, B, I, H, O};
                check_sizes(sizes);
                new (self) Space(sizes, softmax, per_step, isa);
            },
            "T"_a, "B"_a, "I"_a, "H"_a, "O"_a, "softmax"_a, "per_step"_a, "isa"_a = "")
        .def("backpropagate", backpropagate<Real>, "theta"_a.noconvert(), "u"_a.noconvert(),
             "t"_a.noconvert(), "starts"_a.noconvert().none())
        .def("norms", norms<Real>, "update"_a.noconvert().none(), "h"_a, "full"_a)
        .def("norm_gradient", norm_gradient<Real>, "h"_a, "of_Q"_a, "full"_a)
        .def("slow_factor", slow_factor<Real>, "h"_a, "steps"_a)
        .def("slow_gradient", slow_gradient<Real>, "h"_a, "steps"_a)
        .def("example_products", example_products<Real>, "direction"_a.noconvert())
        .def(
            "array", [](nb::handle self, const std::string& name) { return views<Real>(self, name); },
            "name"_a)
        .def_prop_ro("sizes",
                     [](const Space& self) {
                         const Sizes& sizes = self.sizes();
                         return nb::make_tuple(sizes.T, sizes.B, sizes.I, sizes.H, sizes.O,
                                               self.memory().softmax, self.memory().per_step);
                     })
        .def_prop_ro("isa", &Space::isa)
        .def_prop_ro("generation", &Space::generation)
        .def_prop_ro("bytes", &Space::bytes);
    module.def("predict", predict_array<Real>, "theta"_a.noconvert(), "u"_a.noconvert(),
               "starts"_a.noconvert().none(), "hidden"_a, "outputs"_a, "softmax"_a, "per_step"_a,
               "isa"_a = "");
}

}  // namespace
}  // namespace gradsieve

NB_MODULE(_native, module) {
    using namespace gradsieve;
    nanobind::set_leak_warnings(false);  // an interpreter that ends with a flow alive is no news
    bind_workspace<float>(module, "Workspace32");
    bind_workspace<double>(module, "Workspace64");
    bind_vectors(module);
    bind_recurrent(module);
    bind_linearised(module);
    module.def("available_isas", available_instruction_sets);
    module.def("thread_limit", thread_limit);
    module.def("limit_threads", limit_threads, "most"_a, "beyond"_a = false);
    module.def("shared_calls", shared_calls);
    module.def("isa", [] { return std::string(instruction_set().name); });
}
