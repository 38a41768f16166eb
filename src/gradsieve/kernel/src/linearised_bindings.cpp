// The Python side of linearised.hpp.
#include "linearised_bindings.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "linearised_layer.hpp"

namespace gradsieve {

namespace {

using namespace nb::literals;

template <class Real>
void bind_layer(nb::module_& module, const char* name) {
    using Own = LinearLayer<Real>;
    using InTime = typename Own::InTime;
    using Parts = std::vector<typename Own::Optional>;
    nb::class_<Own>(module, name)
        .def(nb::init<const std::string&, Index, Index, Index, Index, const std::string&>(),
             "cell"_a, "T"_a, "B"_a, "I"_a, "H"_a, "isa"_a = "")
        .def("load",
             nb::overload_cast<const InTime&, const InTime&, const Parts&, const Parts&>(&Own::load),
             "u"_a.noconvert(), "h"_a.noconvert(), "initial"_a.noconvert(),
             "weights"_a.noconvert())
        .def("recall", &Own::recall, "u"_a.noconvert(), "h"_a.noconvert(),
             "initial"_a.noconvert(), "weights"_a.noconvert(),
             "gates"_a.noconvert().none() = nb::none(), "c"_a.noconvert().none() = nb::none())
        .def("pull", &Own::pull, "gamma"_a.noconvert(), "last"_a.noconvert(),
             "above"_a.noconvert().none() = nb::none(),
             "above_exponents"_a.noconvert().none() = nb::none())
        .def("slow", &Own::slow, "weights"_a.noconvert())
        .def("slow_ends", &Own::slow_ends, "weights"_a.noconvert(), "last"_a.noconvert())
        .def("slow_slopes", &Own::slow_slopes, "weights"_a.noconvert(), "last"_a.noconvert(),
             "share"_a)
        .def("push_cotangent", &Own::push_cotangent, "near"_a.noconvert(), "slow"_a.noconvert(),
             "factors"_a.noconvert(), "last"_a.noconvert(),
             "below"_a.noconvert().none() = nb::none())
        .def("push_update", &Own::push_update, "W_ih"_a.noconvert(), "W_hh"_a.noconvert(),
             "b_ih"_a.noconvert().none(), "b_hh"_a.noconvert().none(),
             "below"_a.noconvert().none() = nb::none())
        .def("bend_cotangent", &Own::bend_cotangent, "above"_a.noconvert().none() = nb::none())
        .def("bend_update", &Own::bend_update, "W_ih"_a.noconvert(), "W_hh"_a.noconvert(),
             "above"_a.noconvert().none() = nb::none(),
             "above_exponents"_a.noconvert().none() = nb::none())
        .def("by_inputs", &Own::by_inputs, "W_ih"_a.noconvert(),
             "update"_a.noconvert().none() = nb::none(), "of_change"_a = false)
        .def("by_weights", &Own::by_weights)
        .def_prop_ro("delta", [](nb::handle_t<Own> self) {
            const Own& own = nb::cast<Own&>(self);
            own.need_pulled();
            return own.products(own.at().delta, self);
        })
        .def_prop_ro("last", [](nb::handle_t<Own> self) {
            const Own& own = nb::cast<Own&>(self);
            own.need_pulled();
            return own.last(self);
        })
        .def_prop_ro("exponents", [](nb::handle_t<Own> self) {
            const Own& own = nb::cast<Own&>(self);
            own.need_pulled();
            return own.exponents(self);
        })
        .def_prop_ro("change", [](nb::handle_t<Own> self) {
            const Own& own = nb::cast<Own&>(self);
            own.need_bent();
            return own.products(own.at().change, self);
        })
        .def_prop_ro("after", [](nb::handle_t<Own> self) {
            const Own& own = nb::cast<Own&>(self);
            own.need_pushed();
            return own.units(own.at().after, self);
        });
}

}  // namespace

void bind_linearised(nb::module_& module) {
    bind_layer<float>(module, "Linearised32");
    bind_layer<double>(module, "Linearised64");
}

}  // namespace gradsieve
