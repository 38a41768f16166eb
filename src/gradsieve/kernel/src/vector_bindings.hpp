// Adds the routines of vectors.hpp, and the measured peak, to a Python module.
#pragma once

#include <nanobind/nanobind.h>

namespace gradsieve {

void bind_vectors(nanobind::module_& module);

}  // namespace gradsieve
