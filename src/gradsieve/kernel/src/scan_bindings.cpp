// The Python side of scan.hpp: checks every array, then works without the interpreter's lock.
#include "scan_bindings.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>
#include <string>

#include "float_state.hpp"
#include "scan_access.hpp"

namespace gradsieve {

namespace {

namespace nb = nanobind;
using namespace nb::literals;

template <class Real>
using In = nb::ndarray<const Real, nb::c_contig, nb::device::cpu>;
template <class Real>
using Out = nb::ndarray<Real, nb::c_contig, nb::device::cpu>;
template <class Real>
using Ins = std::vector<std::optional<In<Real>>>;

template <class Array>
auto* checked(const char* name, const Array& array, std::size_t size) {
    if (array.size() != size)
        throw std::invalid_argument(std::string(name) + " has " + std::to_string(array.size()) +
                                    " values; it must have " + std::to_string(size));
    return array.data();
}

template <class Real>
const Real* checked_or_null(const char* name, const std::optional<In<Real>>& array,
                            std::size_t size) {
    return array ? checked(name, *array, size) : nullptr;
}

struct Shape {
    std::size_t T, B, S, G, H;
    std::size_t state() const { return T * B * H; }
    std::size_t gates() const { return T * B * G * H; }
};

void check_count(const char* name, std::size_t count, std::size_t expected) {
    if (count != expected || count > std::size_t(most_parts * most_parts))
        throw std::invalid_argument(std::string(name) + " has " + std::to_string(count) +
                                    " arrays; it must have " + std::to_string(expected));
}

template <class Real>
CellTables<Real> tables(const std::vector<In<Real>>& K, const Ins<Real>& L, const In<Real>& W,
                        const std::optional<In<Real>>& through, Shape& shape) {
    if (K.empty() || K.size() > std::size_t(most_parts) || K[0].ndim() != 4)
        throw std::invalid_argument("K must be 1 to 4 arrays (T,B,G,H)");
    if (through && (K.size() != 1 || L.size() != 1 || !L[0]))
        throw std::invalid_argument("with through, K and L must be one array each");
    shape = {K[0].shape(0), K[0].shape(1), K.size(), K[0].shape(2), K[0].shape(3)};
    CellTables<Real> cell{};
    cell.T = Index(shape.T), cell.B = Index(shape.B), cell.S = Index(shape.S);
    cell.G = Index(shape.G), cell.H = Index(shape.H);
    check_count("L", L.size(), shape.S * shape.S);
    for (std::size_t s = 0; s < shape.S; ++s) cell.K[s] = checked("K", K[s], shape.gates());
    for (std::size_t i = 0; i < L.size(); ++i)
        cell.L[i] = checked_or_null<Real>("L", L[i], shape.state());
    cell.W = checked("W", W, shape.G * shape.H * shape.H);
    cell.through = checked_or_null<Real>("through", through, shape.state());
    if (through) cell.S = 2, shape.S = 2;
    return cell;
}

template <class Real>
void pull(const std::vector<In<Real>>& K, const Ins<Real>& L, const In<Real>& W,
          const Ins<Real>& injected, const std::optional<In<std::int32_t>>& injected_exponents,
          const std::optional<In<Real>>& added_delta, const Ins<Real>& added_state,
          const Out<std::int32_t>& exponents, bool adaptive, const Out<Real>& delta,
          const std::vector<std::optional<Out<Real>>>& g,
          const std::optional<In<Real>>& through) {
    Shape shape{};
    const CellTables<Real> cell = tables<Real>(K, L, W, through, shape);
    Pull<Real> at{};
    check_count("injected", injected.size(), shape.S);
    check_count("added_state", added_state.size(), shape.S);
    check_count("g", g.size(), shape.S);
    for (std::size_t s = 0; s < shape.S; ++s) {
        at.injected[s] = checked_or_null<Real>("injected", injected[s], shape.state());
        at.added_state[s] = checked_or_null<Real>("added_state", added_state[s], shape.state());
        at.g[s] = g[s] ? checked("g", *g[s], shape.state()) : nullptr;
    }
    at.injected_exponents = checked_or_null<std::int32_t>("injected_exponents", injected_exponents,
                                                          shape.T * shape.B);
    at.added_delta = checked_or_null<Real>("added_delta", added_delta, shape.gates());
    at.exponents = checked("exponents", exponents, shape.T * shape.B);
    at.adaptive = adaptive;
    at.delta = checked("delta", delta, shape.gates());
    const nb::gil_scoped_release unlocked;
    const FloatState state;
    Scratch<Real> scratch(scans<Real>().scratch(cell.B, cell.G, cell.H));
    scans<Real>().pull(cell, at, scratch.data());
}

template <class Real>
void push(const std::vector<In<Real>>& K, const Ins<Real>& L, const In<Real>& W,
          const In<Real>& explicit_da, const Ins<Real>& R, const Out<Real>& da,
          const std::vector<Out<Real>>& ds, const std::optional<In<Real>>& through) {
    Shape shape{};
    const CellTables<Real> cell = tables<Real>(K, L, W, through, shape);
    Push<Real> at{};
    check_count("R", R.size(), shape.S);
    check_count("ds", ds.size(), shape.S);
    for (std::size_t s = 0; s < shape.S; ++s) {
        at.R[s] = checked_or_null<Real>("R", R[s], shape.state());
        at.ds[s] = checked("ds", ds[s], shape.state());
    }
    at.explicit_da = checked("explicit_da", explicit_da, shape.gates());
    at.da = checked("da", da, shape.gates());
    const nb::gil_scoped_release unlocked;
    const FloatState state;
    Scratch<Real> scratch(scans<Real>().scratch(cell.B, cell.G, cell.H));
    scans<Real>().push(cell, at, scratch.data());
}

template <class Array>
Shape gate_shape(const char* name, const Array& array) {
    if (array.ndim() != 4 || array.shape(2) != 4)
        throw std::invalid_argument(std::string(name) + " must have the axes (T,B,4,H)");
    return {array.shape(0), array.shape(1), 2, 4, array.shape(3)};
}

template <class Real>
void lstm_units(const In<Real>& v, const In<Real>& initial, const Out<Real>& values,
                const Out<Real>& c, const Out<Real>& t, const Out<Real>& K,
                const Out<Real>& through, const Out<Real>& keep) {
    const Shape shape = gate_shape("v", v);
    LstmUnits<Real> at{};
    at.T = Index(shape.T), at.B = Index(shape.B), at.H = Index(shape.H);
    at.v = v.data();
    at.initial = checked("initial", initial, shape.B * shape.H);
    at.values = checked("values", values, shape.gates());
    at.c = checked("c", c, shape.state() + shape.B * shape.H);
    at.t = checked("t", t, shape.state());
    at.K = checked("K", K, shape.gates());
    at.through = checked("through", through, shape.state());
    at.keep = checked("keep", keep, shape.state());
    const nb::gil_scoped_release unlocked;
    const FloatState state;
    scans<Real>().lstm_units(at);
}

template <class Real>
void lstm_bend(const In<Real>& values, const In<Real>& c, const In<Real>& t,
               const In<Real>& g_h, const In<Real>& g_c, const In<Real>& dv, const In<Real>& dc,
               const Out<Real>& by_v, const Out<Real>& by_c) {
    const Shape shape = gate_shape("values", values);
    LstmBend<Real> at{};
    at.T = Index(shape.T), at.B = Index(shape.B), at.H = Index(shape.H);
    at.values = values.data();
    at.c = checked("c", c, shape.state() + shape.B * shape.H);
    at.t = checked("t", t, shape.state());
    at.g_h = checked("g_h", g_h, shape.state());
    at.g_c = checked("g_c", g_c, shape.state());
    at.dv = checked("dv", dv, shape.gates());
    at.dc = checked("dc", dc, shape.state());
    at.by_v = checked("by_v", by_v, shape.gates());
    at.by_c = checked("by_c", by_c, shape.state());
    const nb::gil_scoped_release unlocked;
    const FloatState state;
    scans<Real>().lstm_bend(at);
}

template <class Real>
void products(const Out<Real>& out, const std::vector<In<Real>>& A, const std::vector<In<Real>>& W,
              bool transposed, const std::optional<In<Real>>& bias) {
    if (out.ndim() != 2 || A.empty() || A.size() > 2)
        throw std::invalid_argument("out must have 2 axes, and A 1 or 2 arrays");
    check_count("W", W.size(), A.size());
    Products<Real> at{};
    at.rows = Index(out.shape(0)), at.columns = Index(out.shape(1)), at.count = Index(A.size());
    Index depth = 0;
    for (std::size_t f = 0; f < A.size(); ++f) {
        if (A[f].ndim() != 2) throw std::invalid_argument("A must have 2 axes");
        at.depth[f] = Index(A[f].shape(1));
        depth += at.depth[f];
        at.A[f] = checked("A", A[f], out.shape(0) * A[f].shape(1));
        at.W[f] = checked("W", W[f], out.shape(1) * A[f].shape(1));
    }
    at.bias = checked_or_null<Real>("bias", bias, out.shape(1));
    at.transposed = transposed;
    at.out = out.data();
    const nb::gil_scoped_release unlocked;
    const FloatState state;
    Scratch<Real> scratch(scans<Real>().products_scratch(depth, at.columns));
    scans<Real>().products(at, scratch.data());
}

template <class Real>
void bind(nb::module_& module) {
    module.def("products", products<Real>, "out"_a.noconvert(), "A"_a.noconvert(),
               "W"_a.noconvert(), "transposed"_a, "bias"_a.noconvert().none());
    module.def("pull", pull<Real>, "K"_a.noconvert(), "L"_a.noconvert(), "W"_a.noconvert(),
               "injected"_a.noconvert(), "injected_exponents"_a.noconvert().none(),
               "added_delta"_a.noconvert().none(), "added_state"_a.noconvert(),
               "exponents"_a.noconvert(), "adaptive"_a, "delta"_a.noconvert(), "g"_a.noconvert(),
               "through"_a.noconvert().none() = nb::none());
    module.def("push", push<Real>, "K"_a.noconvert(), "L"_a.noconvert(), "W"_a.noconvert(),
               "explicit_da"_a.noconvert(), "R"_a.noconvert(), "da"_a.noconvert(),
               "ds"_a.noconvert(), "through"_a.noconvert().none() = nb::none());
    module.def("lstm_units", lstm_units<Real>, "v"_a.noconvert(), "initial"_a.noconvert(),
               "values"_a.noconvert(), "c"_a.noconvert(), "t"_a.noconvert(), "K"_a.noconvert(),
               "through"_a.noconvert(), "keep"_a.noconvert());
    module.def("lstm_bend", lstm_bend<Real>, "values"_a.noconvert(), "c"_a.noconvert(),
               "t"_a.noconvert(), "g_h"_a.noconvert(), "g_c"_a.noconvert(), "dv"_a.noconvert(),
               "dc"_a.noconvert(),
               "by_v"_a.noconvert(), "by_c"_a.noconvert());
}

}  // namespace

void bind_scans(nb::module_& module) {
    bind<float>(module);
    bind<double>(module);
    bind_tanh(module);
}

}  // namespace gradsieve
