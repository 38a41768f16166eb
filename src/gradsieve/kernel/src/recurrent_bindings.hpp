// Adds the recurrent layers of recurrent.hpp to a Python module.
#pragma once

#include <nanobind/nanobind.h>

namespace gradsieve {

void bind_recurrent(nanobind::module_& module);

}  // namespace gradsieve
