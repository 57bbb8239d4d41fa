// Matrix products on CPUs: by oneDNN where it is faster, with a matrix that is laid out for it once.

#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/mm.h>

#include <optional>

#include "cpu/vectors.h"

namespace fairseq_plugins {

using at::Tensor;
using OptionalTensor = std::optional<Tensor>;

// x A^T (+ b) for many x and one A (N, K), which is prepared for them once. oneDNN multiplies by a matrix that it has laid
// out beforehand a tenth faster than at::mm for hundreds of rows of x, and twice as fast for a few.
class Product {
 public:
  Product() = default;

  Product(const Tensor& matrix, int64_t rows, const OptionalTensor& bias = std::nullopt) : bias_(bias) {
    // Calls of oneDNN cost some microseconds more.
    constexpr int64_t smallest = 1 << 15;
    if (is_available(matrix.scalar_type()) && matrix.numel() >= smallest) {
      torch::jit::Stack stack{matrix.contiguous(), rows};
      reorder()->callBoxed(&stack);
      matrix_ = stack[0].toTensor();
      is_packed_ = true;
    } else {
      // at::mm would lay out A^T anew each time.
      matrix_ = matrix.t().contiguous();
    }
  }

  Tensor operator()(const Tensor& x) const {
    if (!is_packed_) return bias_ ? at::addmm(*bias_, x, matrix_) : at::mm(x, matrix_);
    return multiplied(x, matrix_, bias_);
  }

  // Whether oneDNN multiplies numbers of this type here.
  static bool is_available(at::ScalarType type) {
    const bool takes_type = type == at::kFloat || type == at::kBFloat16;
    return takes_type && at::globalContext().userEnabledMkldnn() && reorder() && multiply();
  }

  // x A^T + b by oneDNN; A may be laid out.
  static Tensor multiplied(const Tensor& x, const Tensor& matrix, const OptionalTensor& bias) {
    torch::jit::Stack stack{x, matrix, bias, "none", c10::List<std::optional<at::Scalar>>(), c10::IValue()};
    multiply()->callBoxed(&stack);
    return stack[0].toTensor();
  }

 private:
  static const std::optional<c10::OperatorHandle>& reorder() {
    static const auto found = operation("mkldnn::_reorder_linear_weight");
    return found;
  }

  static const std::optional<c10::OperatorHandle>& multiply() {
    static const auto found = operation("mkldnn::_linear_pointwise");
    return found;
  }

  // Nothing where this build of torch does not have it.
  static std::optional<c10::OperatorHandle> operation(const char* name) {
    if (!at::globalContext().hasMKLDNN()) return std::nullopt;
    return c10::Dispatcher::singleton().findSchema({name, ""});
  }

  Tensor matrix_;
  OptionalTensor bias_;
  bool is_packed_ = false;
};

inline OptionalTensor optional(const Tensor& tensor) {
  return tensor.defined() ? OptionalTensor(tensor) : std::nullopt;
}

// The same as a tensor of this type.
inline OptionalTensor optional(const Tensor& tensor, at::ScalarType type) {
  return tensor.defined() ? OptionalTensor(tensor.to(type)) : std::nullopt;
}

// sum += term, either of which may be undefined. A sum of several terms is of type Compute: in bfloat16 it would stand
// still once it is some hundred times as large as the next term.
inline void add(Tensor& sum, const Tensor& term) {
  if (!sum.defined()) {
    sum = term;
  } else if (term.defined()) {
    sum = sum.to(compute_type(sum.scalar_type()));
    sum.add_(term);
  }
}

// sum += x^T y, as add does it. The product with the smaller matrix on the left is up to a third faster; so is oneDNN
// where the result is large and its sizes are no multiples of 16.
inline void add_product(Tensor& sum, const Tensor& x, const Tensor& y) {
  constexpr int64_t large = 1 << 20;
  const bool is_swapped = x.size(1) > y.size(1);
  const Tensor &left = is_swapped ? y : x, &right = is_swapped ? x : y;
  if (sum.defined() && x.scalar_type() == compute_type(x.scalar_type())) {
    Tensor out = is_swapped ? sum.t() : sum;
    at::addmm_out(out, out, left.t(), right);
  } else {
    const bool is_large = x.size(1) * y.size(1) >= large;
    const Tensor product = is_large && Product::is_available(x.scalar_type())
        ? Product::multiplied(left.t(), right.t(), std::nullopt)
        : at::mm(left.t(), right);
    add(sum, is_swapped ? product.t() : product);
  }
}

}  // namespace fairseq_plugins
