// Adds the recursions of scan.hpp to a Python module.
#pragma once

#include <nanobind/nanobind.h>

namespace gradsieve {

void bind_scans(nanobind::module_& module);
void bind_tanh(nanobind::module_& module);

}  // namespace gradsieve
