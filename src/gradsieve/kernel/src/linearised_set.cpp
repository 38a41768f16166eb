// The passes of linearised.hpp for one instruction set. Compiled once for each.
#include "linearised_passes.hpp"

namespace gradsieve::GRADSIEVE_ISA {

template <class Work>
void with_cell(Unit cell, const Work& work) {
    switch (cell) {
        case Unit::tanh: return work(TanhUnit{});
        case Unit::relu: return work(ReluUnit{});
        case Unit::gru: return work(GruUnit{});
        case Unit::lstm: return work(LstmUnit{});
    }
}

template <class Real>
constexpr LinearisedRoutines<Real> linearised = {
    [](Linearised<Real>& at, const Trajectory<Real>& from, const LayerWeights<Real>& weights) {
        with_cell(at.cell, [&](auto cell) { load<decltype(cell)>(at, from, weights); });
    },
    [](Linearised<Real>& at, const Entering<Real>& from) {
        with_cell(at.cell, [&](auto cell) { pull<decltype(cell)>(at, from); });
    },
    slow<Real>,
    [](Linearised<Real>& at, const Pushing<Real>& from) {
        with_cell(at.cell, [&](auto cell) { push<decltype(cell)>(at, from); });
    },
    [](Linearised<Real>& at, const Entering<Real>& from, bool moved, const LayerWeights<Real>* update,
       const std::int32_t* exponents) {
        if (update && !moved) pack_layer(at, *update, at.update);  // else push has done so
        with_cell(at.cell, [&](auto cell) {
            bend<decltype(cell)>(at, from, moved, update != nullptr, exponents);
        });
    },
    by_inputs<Real>,
    by_weights<Real>};

extern const LinearisedSet linearised_set;
const LinearisedSet linearised_set = {linearised<float>, linearised<double>};

}  // namespace gradsieve::GRADSIEVE_ISA
