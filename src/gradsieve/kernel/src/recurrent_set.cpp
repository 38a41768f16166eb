// The recurrent layers of one instruction set. Compiled once for each.
#include "recurrent_backward.hpp"

namespace gradsieve::GRADSIEVE_ISA {

template <class C, class Real>
void forward_cell(const Recurrence<Real>& layer, const States<Real>& to, LayerMemory<Real>& m,
             const Team& team) {
    if (to.gates)
        forward_layer<C, true>(layer, to, m, team);
    else
        forward_layer<C, false>(layer, to, m, team);
}

template <class Real>
void forward(const Recurrence<Real>& layer, const States<Real>& to, LayerMemory<Real>& m,
             const Team& team) {
    if (layer.cell == Cell::tanh) return forward_layer<TanhCell, false>(layer, to, m, team);
    if (layer.cell == Cell::gru) return forward_cell<GruCell>(layer, to, m, team);
    forward_cell<LstmCell>(layer, to, m, team);
}

template <class Real>
void backward(const Recurrence<Real>& layer, const States<Real>& states, const Seeds<Real>& seeds,
              const LayerGradients<Real>& to, LayerMemory<Real>& m, const Team& team) {
    if (layer.cell == Cell::tanh) return backward_layer<TanhCell>(layer, states, seeds, to, m, team);
    if (layer.cell == Cell::gru) return backward_layer<GruCell>(layer, states, seeds, to, m, team);
    backward_layer<LstmCell>(layer, states, seeds, to, m, team);
}

extern const LayerSet layer_set;
const LayerSet layer_set = {{forward<float>, backward<float>}, {forward<double>, backward<double>}};

}  // namespace gradsieve::GRADSIEVE_ISA
