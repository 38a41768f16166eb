// Adds the layers of linearised.hpp to a Python module.
#pragma once

#include <nanobind/nanobind.h>

namespace gradsieve {

void bind_linearised(nanobind::module_& module);

}  // namespace gradsieve
