// A linearised layer (linearised.hpp) that owns its memory and checks every array it is given.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "arena.hpp"
#include "arrays.hpp"
#include "dispatch.hpp"
#include "float_state.hpp"
#include "linearised_slow.hpp"
#include "recurrent.hpp"

namespace gradsieve {

template <class Real>
const LinearisedRoutines<Real>& linearised_routines(const std::string& isa) {
    const LinearisedSet& set = instruction_set(isa).linearised;
    if constexpr (sizeof(Real) == sizeof(float))
        return set.single_precision;
    else
        return set.double_precision;
}

inline Unit unit_of(const std::string& name) {
    constexpr std::array<const char*, 4> names{"tanh", "relu", "gru", "lstm"};
    for (std::size_t i = 0; i < names.size(); ++i)
        if (name == names[i]) return Unit(i);
    throw std::invalid_argument("cell is '" + name + "'; it may be 'tanh', 'relu', 'gru', 'lstm'");
}

template <class Real>
class LinearLayer {
public:
    using Given = nb::ndarray<const Real, nb::c_contig, nb::device::cpu>;
    using Optional = std::optional<Given>;
    using InTime = nb::ndarray<const Real, nb::ndim<3>, nb::device::cpu>;
    using Whole = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
    using Units = nb::ndarray<const std::int32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
    using Doubles = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
    using Shown = nb::ndarray<nb::numpy, Real>;

    LinearLayer(const std::string& cell, Index T, Index B, Index I, Index H, const std::string& isa)
        : routines_(linearised_routines<Real>(isa)) {
        if (T < 1 || B < 1 || I < 1 || H < 1)
            throw std::invalid_argument("T, B, I and H must be at least 1");
        constexpr Index most = Index(1) << 28;
        if (T >= most || B >= most || I >= most || H >= most) throw std::bad_alloc();
        at_.cell = unit_of(cell);
        at_.T = T, at_.B = B, at_.I = I, at_.H = H;
        at_.G = unit_gates(at_.cell), at_.P = unit_blocks(at_.cell);
        at_.S = at_.cell == Unit::lstm ? 2 : 1;
        at_.ld = padded<float>(H), at_.ld_z = at_.ld + padded<float>(I + 1);
        at_.ld_x = padded<float>(I), at_.row = at_.P * at_.ld;
        first_.emplace([this](Arena& arena) { lay_out_first(arena); });
    }

    // weights are weight_ih, weight_hh, bias_ih, bias_hh.
    void load(const InTime& u, const InTime& h, const std::vector<Optional>& initial,
              const std::vector<Optional>& weights) {
        pulled_ = false;
        load({sequence("u", u, at_.I), sequence("h", h, at_.H), {}, nullptr, nullptr}, initial,
             weights);
    }

    // The same of a layer whose own passes have kept gates and c; its deltas stay, if it has any.
    void recall(const InTime& u, const InTime& h, const std::vector<Optional>& initial,
                const std::vector<Optional>& weights, const Optional& gates, const Optional& c) {
        if (gates) check_shape("gates", *gates, {at_.T, at_.B, 4, at_.H});
        if (c) check_shape("c", *c, {at_.T, at_.B, at_.H});
        if ((at_.P > 1 && !gates) || (at_.S > 1 && !c))
            throw std::invalid_argument("gates and, of an lstm, c must be given");
        load({sequence("u", u, at_.I), sequence("h", h, at_.H), {}, gates ? gates->data() : nullptr,
              c ? c->data() : nullptr},
             initial, weights);
    }

    // Where the layer's own way back writes its deltas (recurrent.hpp).
    Followed<Real> followed(Unit cell, Index T, Index B, Index I, Index H) {
        if (cell != at_.cell || T != at_.T || B != at_.B || I != at_.I || H != at_.H)
            throw std::invalid_argument("followed has another cell or other sizes");
        loaded_ = pulled_ = pushed_ = bent_ = false;
        return {at_.delta, {at_.g[0], at_.g[1]}, at_.row, at_.ld, at_.exponents, at_.end, nullptr};
    }
    void has_followed() { pulled_ = true; }

    void pull(const std::vector<Optional>& gamma, const Whole& last,
              const std::optional<InTime>& above, const std::optional<Units>& above_exponents) {
        need(loaded_, "load");
        Entering<Real> from = entering(above, above_exponents);
        check_parts("gamma", gamma.size(), at_.S);
        for (Index s = 0; s < at_.S; ++s) from.gamma[s] = state("gamma", gamma[std::size_t(s)]);
        from.last = steps(last);
        pulled_ = pushed_ = bent_ = false;
        {
            const nb::gil_scoped_release unlocked;
            const FloatState mode;
            routines_.pull(at_, from);
        }
        pulled_ = true;
    }

    nb::tuple slow(const Doubles& weights) const {
        need(pulled_, "pull");
        check_shape("weights", weights, {at_.T, at_.B});
        auto out = new_array<Real>({size(at_.B), size(at_.G), size(at_.H)});
        auto units = new_array<std::int32_t>({size(at_.B)});
        {
            const nb::gil_scoped_release unlocked;
            const FloatState mode;
            routines_.slow(at_, weights.data(), out.data(), units.data());
        }
        return nb::make_tuple(out, units);
    }

    // (4,B): squares and units of each sequence's delta at `last`, and of its slow one.
    NumPy<double> slow_ends(const Doubles& weights, const Whole& last) const {
        need(pulled_, "pull");
        check_shape("weights", weights, {at_.T, at_.B});
        const std::int64_t* at_steps = steps(last);
        auto found = new_array<double>({4, size(at_.B)});
        double* to = found.data();
        const nb::gil_scoped_release unlocked;
        const FloatState mode;
        const SlowEnds<Real> ends(at_, routines_, weights.data(), at_steps);
        for (Index b = 0; b < at_.B; ++b, ++to) {
            to[0] = ends.near_square[size(b)];
            to[at_.B] = at_.exponents[ends.near[size(b)]];
            to[2 * at_.B] = ends.slow_square[size(b)];
            to[3 * at_.B] = ends.units[size(b)];
        }
        return found;
    }

    // by_weights of Q = the sum over sequences of share * ln(|last delta| / |slow one|).
    nb::tuple slow_slopes(const Doubles& weights, const Whole& last, double share) {
        need_linearised();
        check_shape("weights", weights, {at_.T, at_.B});
        Pushing<Real> from{};
        from.last = steps(last);
        second();
        pushed_ = bent_ = false;
        {
            const nb::gil_scoped_release unlocked;
            const FloatState mode;
            const SlowEnds<Real> ends(at_, routines_, weights.data(), from.last);
            const SlowCotangent<Real> psi(at_, ends, weights.data(), share);
            from.near = psi.near.data(), from.slow = ends.slow.data();
            from.factors = psi.factors.data();
            routines_.push(at_, from);
            routines_.bend(at_, {}, true, nullptr, nullptr);
        }
        pushed_ = bent_ = true;
        return by_weights();
    }

    void push_cotangent(const Given& near, const Given& slow, const Doubles& factors,
                        const Whole& last, const std::optional<InTime>& below) {
        need_linearised();
        Pushing<Real> from{};
        check_shape("near", near, {at_.B, at_.G, at_.H});
        check_shape("slow", slow, {at_.B, at_.G, at_.H});
        check_shape("factors", factors, {at_.T, at_.B});
        from.near = near.data(), from.slow = slow.data(), from.factors = factors.data();
        from.last = steps(last);
        push(from, below);
    }

    void push_update(const Given& W_ih, const Given& W_hh, const Optional& b_ih,
                     const Optional& b_hh, const std::optional<InTime>& below) {
        need_linearised();
        const LayerWeights<Real> update = layer("update of ", W_ih, W_hh, b_ih, b_hh);
        Pushing<Real> from{};
        from.update = &update;
        push(from, below);
    }

    void bend_cotangent(const std::optional<InTime>& above) {
        need(pushed_, "push_cotangent");
        bend(entering(above, std::nullopt), nullptr, nullptr);
    }

    void bend_update(const Given& W_ih, const Given& W_hh, const std::optional<InTime>& above,
                     const std::optional<Units>& above_exponents) {
        need_linearised();
        const LayerWeights<Real> update = layer("update of ", W_ih, W_hh, {}, {});
        bend(entering(above, above_exponents), &update, at_.exponents);
    }

    // (T,B,I): delta W_ih; or, along an update, change W_ih + delta dW_ih.
    NumPy<Real> by_inputs(const Given& W_ih, const Optional& update, bool of_change) {
        need(of_change ? bent_ : pulled_, of_change ? "bend" : "pull");
        check_shape("W_ih", W_ih, {at_.G * at_.H, at_.I});
        if (update) check_shape("update of W_ih", *update, {at_.G * at_.H, at_.I});
        second();
        auto out = new_array<Real>({size(at_.T), size(at_.B), size(at_.I)});
        {
            const nb::gil_scoped_release unlocked;
            const FloatState mode;
            const Real* rows = of_change ? at_.change : at_.delta;
            routines_.by_inputs(at_, rows, W_ih.data(), false, out.data());
            if (update) routines_.by_inputs(at_, at_.delta, update->data(), true, out.data());
        }
        return out;
    }

    nb::tuple by_weights() {
        need(bent_, "bend_cotangent");
        const std::size_t rows = size(at_.G * at_.H);
        auto W_ih = new_array<Real>({rows, size(at_.I)}), W_hh = new_array<Real>({rows, size(at_.H)});
        auto b_ih = new_array<Real>({rows}), b_hh = new_array<Real>({rows});
        {
            const nb::gil_scoped_release unlocked;
            const FloatState mode;
            routines_.by_weights(at_, W_ih.data(), W_hh.data(), b_ih.data(), b_hh.data());
        }
        return nb::make_tuple(W_ih, W_hh, b_ih, b_hh);
    }

    Shown products(Real* rows, nb::handle self) const {  // (T,B,G,H)
        const std::size_t shape[] = {size(at_.T), size(at_.B), size(at_.G), size(at_.H)};
        const std::int64_t strides[] = {at_.B * at_.row, at_.row, at_.ld, 1};
        return Shown(rows, 4, shape, self, strides);
    }
    Shown units(Real* rows, nb::handle self) const {  // (T,B,H)
        const std::size_t shape[] = {size(at_.T), size(at_.B), size(at_.H)};
        const std::int64_t strides[] = {at_.B * at_.ld, at_.ld, 1};
        return Shown(rows, 3, shape, self, strides);
    }
    NumPy<std::int32_t> exponents(nb::handle self) const {
        return NumPy<std::int32_t>(at_.exponents, {size(at_.T), size(at_.B)}, self);
    }
    // (B,): the last step at which anything enters, or -1.
    NumPy<std::int64_t> last(nb::handle self) const {
        return NumPy<std::int64_t>(at_.end, {size(at_.B)}, self);
    }
    const Linearised<Real>& at() const { return at_; }
    void need_bent() const { need(bent_, "bend"); }
    void need_pushed() const { need(pushed_, "push"); }
    void need_pulled() const { need(pulled_, "pull"); }
    void need_linearised() const {
        need(loaded_, "load");
        need(pulled_, "pull");
    }

private:
    static std::size_t size(Index count) { return std::size_t(count); }

    static void check_parts(const char* name, std::size_t parts, Index expected) {
        if (Index(parts) != expected)
            throw std::invalid_argument(std::string(name) + " has " + std::to_string(parts) +
                                        " parts; it must have " + std::to_string(expected));
    }

    static void need(bool done, const char* what) {
        if (!done) throw std::invalid_argument(std::string("call ") + what + " first");
    }

    template <class Value>
    static void take(Arena& arena, Value*& array, Index rows, Index columns = 1) {
        array = arena.take<Value>(rows, columns);
    }

    void lay_out_first(Arena& arena) {
        Linearised<Real>& at = at_;
        const Index rows = at.T * at.B;
        const bool gated = at.P > 1, lstm = at.S == 2;
        lay_out(arena, at.weights, at.I * at.ld);
        take(arena, at.z, rows + at.B, at.ld_z);
        take(arena, at.values, rows, at.row);
        take(arena, at.delta, rows, at.row);
        take(arena, at.exponents, rows);
        take(arena, at.end, at.B);
        if (lstm) take(arena, at.c, rows + at.B, at.ld), take(arena, at.t, rows, at.ld);
        for (Index s = 0; s < 2; ++s) {
            if (gated && s < at.S) take(arena, at.g[s], rows, at.ld);
            take(arena, at.carried[s], at.B, at.ld);
            take(arena, at.spare[s], at.B, at.ld);
            take(arena, at.entering[s], at.ld);
        }
    }

    void lay_out_second(Arena& arena) {
        Linearised<Real>& at = at_;
        const Index rows = at.T * at.B;
        const Index inputs = at.I * at.ld, back = at.H * at.ld_x;
        lay_out(arena, at.update, inputs > back ? inputs : back);
        take(arena, at.moved, rows, at.row);
        at.change = at.moved;
        for (Index s = 0; s < at.S; ++s) take(arena, at.before[s], rows, at.ld);
        take(arena, at.after, rows, at.ld);
        take(arena, at.below, rows, at.ld_x);
        take(arena, at.turned, at.B, at.ld_x);
        take(arena, at.product, at.P * at.H, at.ld_z);
    }

    void lay_out(Arena& arena, PackedLayer<Real>& packed, Index inputs) {
        take(arena, packed.hidden, at_.G * at_.H, at_.ld);
        take(arena, packed.back, at_.G * at_.H, at_.ld);
        take(arena, packed.inputs, at_.P, inputs);
        take(arena, packed.bias, at_.P, at_.ld);
    }

    void second() {
        if (!second_) second_.emplace([this](Arena& arena) { lay_out_second(arena); });
    }

    LayerWeights<Real> layer(const std::string& of, const Given& W_ih, const Given& W_hh,
                             const Optional& b_ih, const Optional& b_hh) const {
        const Index rows = at_.G * at_.H;
        check_shape((of + "W_ih").c_str(), W_ih, {rows, at_.I});
        check_shape((of + "W_hh").c_str(), W_hh, {rows, at_.H});
        if (b_ih) check_shape((of + "b_ih").c_str(), *b_ih, {rows});
        if (b_hh) check_shape((of + "b_hh").c_str(), *b_hh, {rows});
        return {W_ih.data(), W_hh.data(), b_ih ? b_ih->data() : nullptr,
                b_hh ? b_hh->data() : nullptr};
    }

    const Real* state(const char* name, const Optional& given) const {
        if (!given) return nullptr;
        check_shape(name, *given, {at_.B, at_.H});
        return given->data();
    }

    Sequence<Real> sequence(const char* name, const InTime& given, Index width) const {
        check_shape(name, given, {at_.T, at_.B, width});
        if (width > 1 && given.stride(2) != 1)
            throw std::invalid_argument(std::string(name) + " must be contiguous in its last axis");
        return {given.data(), Index(given.stride(0)), Index(given.stride(1))};
    }

    const std::int64_t* steps(const Whole& last) const {
        check_shape("last", last, {at_.B});
        return last.data();
    }

    Entering<Real> entering(const std::optional<InTime>& above,
                            const std::optional<Units>& exponents) const {
        Entering<Real> from{};
        if (above) from.above = sequence("above", *above, at_.H);
        if (exponents) {
            check_shape("above_exponents", *exponents, {at_.T, at_.B});
            from.above_exponents = exponents->data();
        }
        return from;
    }

    void load(Trajectory<Real> from, const std::vector<Optional>& initial,
              const std::vector<Optional>& weights) {
        check_parts("initial", initial.size(), 2);
        check_parts("weights", weights.size(), 4);
        if (!weights[0] || !weights[1]) throw std::invalid_argument("weights lack a matrix");
        from.initial[0] = state("h0", initial[0]);
        from.initial[1] = state("c0", initial[1]);
        const LayerWeights<Real> own = layer("", *weights[0], *weights[1], weights[2], weights[3]);
        loaded_ = pushed_ = bent_ = false;
        {
            const nb::gil_scoped_release unlocked;
            const FloatState mode;
            routines_.load(at_, from, own);
        }
        loaded_ = true;
    }

    void push(Pushing<Real>& from, const std::optional<InTime>& below) {
        if (below) from.below = sequence("below", *below, at_.I);
        second();
        bent_ = false;
        {
            const nb::gil_scoped_release unlocked;
            const FloatState mode;
            routines_.push(at_, from);
        }
        pushed_ = true;
    }

    void bend(const Entering<Real>& from, const LayerWeights<Real>* update,
              const std::int32_t* exponents) {
        need(!(pushed_ && bent_), "push");  // its change stands where push's was
        second();
        {
            const nb::gil_scoped_release unlocked;
            const FloatState mode;
            routines_.bend(at_, from, pushed_, update, exponents);
        }
        bent_ = true;
    }

    const LinearisedRoutines<Real>& routines_;
    Linearised<Real> at_{};
    std::optional<Arena> first_, second_;
    bool loaded_ = false, pulled_ = false, pushed_ = false, bent_ = false;
};

}  // namespace gradsieve
