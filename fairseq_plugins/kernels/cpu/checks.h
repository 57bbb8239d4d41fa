// What an entry point was given, checked before any pointer is used. A std::invalid_argument is a ValueError in Python.

#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/StringUtil.h>

#include <optional>
#include <stdexcept>

namespace fairseq_plugins {

using at::Tensor;

template <typename... Parts>
inline void check(bool holds, const Parts&... message) {
  if (!holds) throw std::invalid_argument(c10::str(message...));
}

// A tensor in the CPU's memory, of these sizes and this type; strides are the reader's business.
inline void check_tensor(const char* name, const Tensor& tensor, at::IntArrayRef sizes, at::ScalarType type) {
  check(tensor.defined(), name, " is missing");
  check(tensor.device().is_cpu(), name, " must be on the CPU, not on ", tensor.device());
  check(tensor.layout() == at::kStrided, name, " must be strided, not ", tensor.layout());
  check(tensor.sizes() == sizes, name, " must have the sizes ", sizes, ", not ", tensor.sizes());
  check(tensor.scalar_type() == type, name, " must be of ", type, ", not of ", tensor.scalar_type());
  // That of a fake tensor says that it is on the CPU.
  check(tensor.numel() == 0 || (tensor.has_storage() && tensor.storage().data()), name, " has no memory");
}

// The same where there may be none; `sizes` and `type` are those of the one that there is.
inline void check_tensor(
    const char* name, const std::optional<Tensor>& tensor, at::IntArrayRef sizes, at::ScalarType type) {
  if (tensor) check_tensor(name, *tensor, sizes, type);
}

inline void check_dimensions(const char* name, const Tensor& tensor, int64_t dimensions) {
  check(tensor.defined(), name, " is missing");
  check(tensor.dim() == dimensions, name, " must have ", dimensions, " dimensions, not ", tensor.dim());
}

}  // namespace fairseq_plugins
