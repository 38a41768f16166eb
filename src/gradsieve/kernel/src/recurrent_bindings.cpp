// The Python side of recurrent.hpp: checks every array, then works without the interpreter's lock.
#include "recurrent_bindings.hpp"

#include <nanobind/stl/string.h>

#include "arena.hpp"
#include "dispatch.hpp"
#include "float_state.hpp"
#include "given.hpp"
#include "linearised_layer.hpp"
#include "pool.hpp"
#include "recurrent.hpp"

namespace gradsieve {
namespace {

using namespace nb::literals;

Cell cell_named(const std::string& name) {
    if (name == "tanh") return Cell::tanh;
    if (name == "gru") return Cell::gru;
    if (name == "lstm") return Cell::lstm;
    throw std::invalid_argument("cell is '" + name + "'; it may be 'tanh', 'gru' or 'lstm'");
}

void check_sizes(Index T, Index B, Index I, Index H) {
    if (T < 1 || B < 1 || I < 1 || H < 1)
        throw std::invalid_argument("sizes (T, B, I, H) are " + text({T, B, I, H}) +
                                    "; each must be at least 1");
    constexpr Index most = Index(1) << 31;
    if (T >= most || B >= most || I >= most || H >= most / 4) throw std::bad_alloc();
}

void check_count(const char* name, const nb::tuple& given, std::size_t expected) {
    if (given.size() != expected)
        throw std::invalid_argument(std::string(name) + " has " + std::to_string(given.size()) +
                                    " entries; it must have " + std::to_string(expected));
}

// Where each step's rows begin, from u (T,B,I), or (rows,I) and the number of sequences at each step.
std::vector<Index> first_rows(Given& given, const Named& u, nb::handle batch_sizes) {
    std::vector<Index> first{0};
    if (u.array.ndim() != (batch_sizes.is_none() ? 3 : 2))
        throw std::invalid_argument(batch_sizes.is_none()
                                        ? "u must have the axes (T,B,I)"
                                        : "with batch_sizes, u must have the axes (rows,I)");
    if (batch_sizes.is_none()) {
        for (Index n = 0; n < u.size(0); ++n) first.push_back(first.back() + u.size(1));
        return first;
    }
    const Named& sizes = given.array("batch_sizes", batch_sizes);
    const Index steps = sizes.array.ndim() == 1 ? sizes.size(0) : 0;
    const auto* values = Given::values<std::int64_t>(sizes, {steps});
    for (Index n = 0; n < steps; ++n) {
        if (values[n] < 1 || (n > 0 && values[n] > values[n - 1]))
            throw std::invalid_argument("batch_sizes must be at least 1 and never grow");
        first.push_back(first.back() + Index(values[n]));
    }
    if (first.back() != u.size(0))
        throw std::invalid_argument("u has " + std::to_string(u.size(0)) +
                                    " rows; the sum of batch_sizes is " +
                                    std::to_string(first.back()));
    return first;
}

// What every call is given, as it comes.
struct Arguments {
    const std::string& cell;
    nb::handle u;
    const nb::tuple &weights, &initial;
    nb::handle batch_sizes;
    bool reverse;
};

// A layer whose arrays have been checked.
template <class Real>
struct Call {
    Given& given;
    std::vector<Index> first;
    Recurrence<Real> layer{};

    Call(Given& held, const Named& u, const Arguments& from) : given(held) {
        check_count("weights", from.weights, 4);
        check_count("initial", from.initial, 2);
        first = first_rows(given, u, from.batch_sizes);
        const Named& W_hh = given.array("weight_hh", from.weights[1]);
        layer.cell = cell_named(from.cell);
        layer.T = Index(first.size()) - 1;
        layer.B = layer.T > 0 ? first[1] : 0;
        layer.I = u.size(u.array.ndim() - 1);
        layer.H = W_hh.array.ndim() == 2 ? W_hh.size(1) : 0;
        const Index T = layer.T, B = layer.B, I = layer.I, H = layer.H, G = layer.gates();
        check_sizes(T, B, I, H);
        layer.first = first.data();
        layer.reverse = from.reverse;
        if (from.batch_sizes.is_none())
            check_values<Real>(u, {T, B, I});
        else
            check_values<Real>(u, {rows(), I});
        layer.u = static_cast<const Real*>(u.array.data());
        layer.W_ih = given.values<Real>("weight_ih", from.weights[0], {G * H, I});
        layer.W_hh = Given::values<Real>(W_hh, {G * H, H});
        layer.b_ih = some("bias_ih", from.weights[2], {G * H});
        layer.b_hh = some("bias_hh", from.weights[3], {G * H});
        layer.h0 = some("h0", from.initial[0], {B, H});
        layer.c0 = some("c0", from.initial[1], {B, H});
    }

    // The values of an array, or null for None.
    const Real* some(const char* name, nb::handle object, std::initializer_list<Index> shape) {
        return object.is_none() ? nullptr : given.values<Real>(name, object, shape);
    }
    Real* some_to_write(const char* name, nb::handle object, std::initializer_list<Index> shape) {
        return object.is_none() ? nullptr : given.to_write<Real>(name, object, shape);
    }

    Index rows() const { return first.back(); }

    // What the forward pass writes: h, gates, c and the last h and c.
    States<Real> states_to_write(const nb::tuple& out) {
        check_count("states", out, 5);
        const Index N = rows(), B = layer.B, H = layer.H;
        const bool lstm = layer.cell == Cell::lstm;
        States<Real> to{};
        to.h = given.to_write<Real>("h", out[0], {N, H});
        to.gates = some_to_write("gates", out[1], {N, 4, H});
        if (to.gates && lstm) to.c = given.to_write<Real>("c", out[2], {N, H});
        to.h_last = given.to_write<Real>("last h", out[3], {B, H});
        if (lstm) to.c_last = given.to_write<Real>("last c", out[4], {B, H});
        return to;
    }

    // What it wrote, for the backward pass, which only reads it.
    States<Real> states(const nb::tuple& from) {
        check_count("states", from, 3);
        const Index N = rows(), H = layer.H;
        const auto read = [&](const char* name, nb::handle object,
                              std::initializer_list<Index> shape) {
            return const_cast<Real*>(given.values<Real>(name, object, shape));
        };
        States<Real> kept{};
        kept.h = read("h", from[0], {N, H});
        if (layer.cell != Cell::tanh) kept.gates = read("gates", from[1], {N, 4, H});
        if (layer.cell == Cell::lstm) kept.c = read("c", from[2], {N, H});
        return kept;
    }
};

// Rows of this length lie apart by an odd number of cache lines: columns of a panel then do not
// compete for the same places of the cache.
template <class Real>
Index apart(Index columns) {
    constexpr Index unit = alignment / Index(sizeof(Real));
    const Index width = padded<Real>(columns);
    return width / unit % 2 ? width : width + unit;
}

template <class Real>
LayerMemory<Real> sized(const Recurrence<Real>& layer, Index block) {
    LayerMemory<Real> m{};
    const Index steps = layer.B < block ? block / layer.B : 1;
    m.steps = steps < layer.T ? steps : layer.T;
    m.ld_h = apart<Real>(layer.H + 1);
    m.ld_i = apart<Real>(layer.I + 1);
    m.ld_g = apart<Real>(layer.gates() * layer.H);
    return m;
}

// Multiplications of one product over all steps.
template <class Real>
double multiplications(const Call<Real>& call) {
    return double(call.rows()) * double(call.layer.gates() * call.layer.H * call.layer.H);
}

// Threads that may share a layer: one where sequences differ in length, or where there are so few
// that several steps are worked on together.
template <class Real>
Index threads_of(const Call<Real>& call) {
    const Recurrence<Real>& layer = call.layer;
    const bool even = call.rows() == layer.T * layer.B && layer.B > row_block;
    return even ? threads_worth(layer.B, multiplications(call) / 2) : 1;  // they gain less
}

template <class Real>
void forward(Call<Real>& call, const nb::tuple& out, const std::string& isa) {
    constexpr Index block = 64;  // rows whose products with W_ih are made together
    const LayerSet& set = instruction_set(isa).layers;
    const Recurrence<Real>& layer = call.layer;
    const States<Real> to = call.states_to_write(out);
    const nb::gil_scoped_release unlocked;
    const Caller caller;
    LayerMemory<Real> m = sized(layer, layer.B > row_block ? 1 : block);
    const Index threads = threads_of(call), own_rows = threads * row_block;
    const Index rows = m.steps > 1 ? m.steps * layer.B : own_rows;
    const Index columns = padded<Real>(layer.gates() * layer.H);
    m.size_hh = padded<Real>(layer.H) * columns, m.size_ih = padded<Real>(layer.I) * columns;
    const Arena arena(
        [&](Arena& part) {
            constexpr Index behind = alignment;  // a vector may run over the last row
            m.W_hh = part.template take<Real>(m.size_hh);
            m.W_ih = part.template take<Real>(m.size_ih);
            m.bias_x = part.template take<Real>(m.ld_g);
            m.bias_a = part.template take<Real>(m.ld_g);
            m.h = part.template take<Real>(layer.B, m.ld_h);
            m.c = part.template take<Real>(layer.B, m.ld_h);
            m.inputs = part.template take<Real>(rows, m.ld_i);
            m.x = part.template take<Real>(rows * m.ld_g + behind);
            m.a = part.template take<Real>(own_rows * m.ld_g + behind);
        },
        false);
    const FloatState state;
    run_together(threads, multiplications(call), [&](const Team& team) {
        if constexpr (sizeof(Real) == sizeof(float))
            set.single_precision.forward(layer, to, m, team);
        else
            set.double_precision.forward(layer, to, m, team);
    });
}

Unit unit_of(Cell cell) {
    return cell == Cell::tanh ? Unit::tanh : cell == Cell::gru ? Unit::gru : Unit::lstm;
}

// The linearised layer that is to have the deltas of this call, or null for None.
template <class Real>
LinearLayer<Real>* following(const Call<Real>& call, nb::handle object, Followed<Real>& to) {
    if (object.is_none()) return nullptr;
    const Recurrence<Real>& layer = call.layer;
    LinearLayer<Real>* one = nullptr;
    if (!nb::try_cast<LinearLayer<Real>*>(object, one))
        throw nb::type_error("followed must be a linearised layer in the precision of u");
    if (call.rows() != layer.T * layer.B)
        throw std::invalid_argument("sequences of unequal lengths cannot be followed");
    to = one->followed(unit_of(layer.cell), layer.T, layer.B, layer.I, layer.H);
    return one;
}

// True where the deltas were followed and, of each sequence, are those of one step's seed alone.
template <class Real>
bool backward(Call<Real>& call, const nb::tuple& kept, const nb::tuple& seeds,
              const nb::tuple& gradients, nb::handle followed, const std::string& isa) {
    constexpr Index block = 128;  // rows of deltas that wait for their products
    check_count("seeds", seeds, 3);
    check_count("gradients", gradients, 7);
    const LayerSet& set = instruction_set(isa).layers;
    const Recurrence<Real>& layer = call.layer;
    const Index N = call.rows(), B = layer.B, H = layer.H, I = layer.I, G = layer.gates();
    const States<Real> states = call.states(kept);
    const Seeds<Real> from{call.some("gradient by h", seeds[0], {N, H}),
                           call.some("gradient by the last h", seeds[1], {B, H}),
                           call.some("gradient by the last c", seeds[2], {B, H})};
    LayerGradients<Real> to{
        call.some_to_write("gradient of u", gradients[0], {N, I}),
        call.some_to_write("gradient of h0", gradients[1], {B, H}),
        call.some_to_write("gradient of c0", gradients[2], {B, H}),
        call.some_to_write("gradient of weight_ih", gradients[3], {G * H, I}),
        call.some_to_write("gradient of weight_hh", gradients[4], {G * H, H}),
        call.some_to_write("gradient of bias_ih", gradients[5], {G * H}),
        call.some_to_write("gradient of bias_hh", gradients[6], {G * H}),
        {}};
    LinearLayer<Real>* const follower = following(call, followed, to.followed);
    const nb::gil_scoped_release unlocked;
    const Caller caller;
    LayerMemory<Real> m = sized(layer, block);
    const Index rows = m.steps * B, depth = padded<Real>(G * H);
    constexpr Index unit = alignment / Index(sizeof(Real));
    m.size_hh = depth * padded<Real>(H);
    m.size_ih = depth * padded<Real>(I);
    m.size_in = padded<Real>(H) * padded<Real>(I);
    const Arena arena(
        [&](Arena& part) {
            m.W_hh = part.template take<Real>(m.size_hh);
            m.W_ih = part.template take<Real>(m.size_ih);
            m.W_in = part.template take<Real>(m.size_in);
            m.h = part.template take<Real>(B, m.ld_h);
            m.c = part.template take<Real>(B, m.ld_h);
            m.direct = part.template take<Real>(B, m.ld_h);
            m.inputs = part.template take<Real>(rows, m.ld_i);
            m.before = part.template take<Real>(rows, m.ld_h);
            m.delta = part.template take<Real>(rows, m.ld_g);
            m.delta_n = part.template take<Real>(rows, m.ld_h);
            m.by_hh = part.template take<Real>(H + 1, m.ld_g);
            m.by_ih = part.template take<Real>(I + 1, m.ld_g);
            m.by_in = part.template take<Real>(I + 1, m.ld_h);
            m.tail_hh = part.template take<Real>(unit, m.ld_h);
            m.tail_ih = part.template take<Real>(unit, m.ld_i);
            m.tail_in = part.template take<Real>(unit, m.ld_i);
            m.by_u = part.template take<Real>(rows, m.ld_i);
            if (!follower) return;
            m.entering = part.template take<Real>(B, m.ld_h);
            to.followed.first = part.template take<std::int64_t>(B);
        },
        false);
    const FloatState state;
    run_together(threads_of(call), multiplications(call), [&](const Team& team) {
        if constexpr (sizeof(Real) == sizeof(float))
            set.single_precision.backward(layer, states, from, to, m, team);
        else
            set.double_precision.backward(layer, states, from, to, m, team);
    });
    if (!follower) return false;
    follower->has_followed();
    for (Index b = 0; b < B; ++b)
        if (to.followed.first[b] != to.followed.last[b]) return false;
    return true;
}

// Runs with the layer in the precision of u.
template <class Run>
void in_its_precision(const Arguments& from, const Run& run) {
    Given given;
    const Named& u = given.array("u", from.u);
    if (u.array.dtype() == nb::dtype<double>()) {
        Call<double> call(given, u, from);
        run(call);
    } else {
        Call<float> call(given, u, from);
        run(call);
    }
}

void recurrent_forward(const std::string& cell, nb::handle u, const nb::tuple& weights,
                       const nb::tuple& initial, nb::handle batch_sizes, bool reverse,
                       const nb::tuple& out, const std::string& isa) {
    in_its_precision({cell, u, weights, initial, batch_sizes, reverse},
                     [&](auto& call) { forward(call, out, isa); });
}

bool recurrent_backward(const std::string& cell, nb::handle u, const nb::tuple& weights,
                        const nb::tuple& initial, nb::handle batch_sizes, bool reverse,
                        const nb::tuple& states, const nb::tuple& seeds, const nb::tuple& out,
                        const std::string& isa, nb::handle followed) {
    bool alone = false;
    in_its_precision({cell, u, weights, initial, batch_sizes, reverse}, [&](auto& call) {
        alone = backward(call, states, seeds, out, followed, isa);
    });
    return alone;
}

}  // namespace

void bind_recurrent(nb::module_& module) {
    module.def("recurrent_forward", recurrent_forward, "cell"_a, "u"_a.none(), "weights"_a, "initial"_a,
               "batch_sizes"_a.none(), "reverse"_a, "out"_a, "isa"_a = "");
    module.def("recurrent_backward", recurrent_backward, "cell"_a, "u"_a.none(), "weights"_a, "initial"_a,
               "batch_sizes"_a.none(), "reverse"_a, "states"_a, "seeds"_a, "out"_a,
               "isa"_a = "", "followed"_a.none() = nb::none());
}

}  // namespace gradsieve
