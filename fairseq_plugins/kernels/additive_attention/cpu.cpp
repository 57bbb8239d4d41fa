// Additive attention on CPUs: weights(b, t, s) = softmax over s of v^T tanh(q(b, t) + k(b, s)), and the gradients of q, k
// and v. reference.py reads like the paper; this file is held to it. No table of (B, T, S, A) is ever written: the tanh is
// computed again in the backward pass, which is cheaper than to store and to read it. Sentences are split over the threads.

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/utils/pybind.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <tuple>
#include <vector>

#include "cpu/checks.h"
#include "cpu/vectors.h"

namespace {

using at::Tensor;
using fairseq_plugins::check_dimensions;
using fairseq_plugins::check_tensor;
using fairseq_plugins::for_each_vector;
using fairseq_plugins::load;
using fairseq_plugins::store;
using fairseq_plugins::tangent;
using fairseq_plugins::Vector;

struct Sizes {
  int64_t batch, targets, sources, features;

  Sizes(const Tensor& query, const Tensor& keys, const Tensor& v) {
    check_dimensions("query", query, 3);
    check_dimensions("keys", keys, 3);
    batch = query.size(0), targets = query.size(1), sources = keys.size(1), features = query.size(2);
    const auto type = query.scalar_type();
    check_tensor("query", query, query.sizes(), type);
    check_tensor("keys", keys, {batch, sources, features}, type);
    check_tensor("score", v, {features}, type);
  }

  // Of the weights.
  std::vector<int64_t> table() const { return {batch, targets, sources}; }
};

template <typename T>
T score_of(const T* query, const T* key, const T* v, int64_t features) {
  Vector<T> sum(T(0));
  for_each_vector<T>(features, [&](int64_t k, auto n) {
    // Beyond the last feature v is loaded as 0.
    sum = sum + tangent(load(query + k, n) + load(key + k, n)) * load(v + k, n);
  });
  return fairseq_plugins::sum_of(sum);
}

template <typename T>
void run_forward(const T* query, const T* keys, const T* v, const bool* padding, T* weights, const Sizes& n) {
  at::parallel_for(0, n.batch, 1, [&](int64_t first, int64_t last) {
    for (int64_t b = first; b < last; b++) {
      const bool* mask = padding == nullptr ? nullptr : padding + b * n.sources;
      if (mask != nullptr && std::all_of(mask, mask + n.sources, [](bool is_padding) { return is_padding; })) {
        std::fill_n(weights + b * n.targets * n.sources, n.targets * n.sources, T(0));
        continue;
      }
      for (int64_t t = 0; t < n.targets; t++) {
        const T* q = query + (b * n.targets + t) * n.features;
        T* row = weights + (b * n.targets + t) * n.sources;
        for (int64_t s = 0; s < n.sources; s++) {
          row[s] = mask != nullptr && mask[s] ? -std::numeric_limits<T>::infinity()
                                              : score_of(q, keys + (b * n.sources + s) * n.features, v, n.features);
        }
        fairseq_plugins::softmax(row, n.sources);
      }
    }
  });
}

// The gradient of v is a row for each sentence, to be summed.
template <typename T>
void run_backward(
    const T* gradient, const T* query, const T* keys, const T* v, const T* weights, T* of_query, T* of_keys, T* of_v,
    const Sizes& n) {
  at::parallel_for(0, n.batch, 1, [&](int64_t first, int64_t last) {
    for (int64_t b = first; b < last; b++) {
      T* dv = of_v + b * n.features;
      for (int64_t t = 0; t < n.targets; t++) {
        const int64_t row = (b * n.targets + t) * n.sources;
        const T* q = query + (b * n.targets + t) * n.features;
        T* dq = of_query + (b * n.targets + t) * n.features;
        T mean = 0;
        for (int64_t s = 0; s < n.sources; s++) mean += gradient[row + s] * weights[row + s];
        for (int64_t s = 0; s < n.sources; s++) {
          const T energy = weights[row + s] * (gradient[row + s] - mean);
          // Padding, among others.
          if (energy == 0) continue;
          const T* key = keys + (b * n.sources + s) * n.features;
          T* dk = of_keys + (b * n.sources + s) * n.features;
          const Vector<T> of_energy(energy), one(T(1));
          for_each_vector<T>(n.features, [&](int64_t k, auto count) {
            const Vector<T> tangents = tangent(load(q + k, count) + load(key + k, count));
            const Vector<T> of_sum = of_energy * load(v + k, count) * (one - tangents * tangents);
            store(load(dq + k, count) + of_sum, dq + k, count);
            store(load(dk + k, count) + of_sum, dk + k, count);
            store(load(dv + k, count) + of_energy * tangents, dv + k, count);
          });
        }
      }
    }
  });
}

// query (B, T, A), keys (B, S, A), v (A), padding (B, S) or nothing -> weights (B, T, S)
Tensor forward(
    const Tensor& given_query, const Tensor& given_keys, const Tensor& given_v, const std::optional<Tensor>& padding) {
  const Sizes sizes(given_query, given_keys, given_v);
  check_tensor("padding", padding, {sizes.batch, sizes.sources}, at::kBool);
  const Tensor query = given_query.contiguous(), keys = given_keys.contiguous(), v = given_v.contiguous();
  const Tensor is_padding = padding ? padding->contiguous() : Tensor();
  const Tensor weights = at::empty(sizes.table(), query.options());
  const bool* mask = padding ? is_padding.const_data_ptr<bool>() : nullptr;
  AT_DISPATCH_FLOATING_TYPES(query.scalar_type(), "additive_attention", [&] {
    run_forward(
        query.const_data_ptr<scalar_t>(), keys.const_data_ptr<scalar_t>(), v.const_data_ptr<scalar_t>(), mask,
        weights.data_ptr<scalar_t>(), sizes);
  });
  return weights;
}

// The gradients of query, keys and v.
std::tuple<Tensor, Tensor, Tensor> backward(
    const Tensor& given_gradient, const Tensor& given_query, const Tensor& given_keys, const Tensor& given_v,
    const Tensor& given_weights) {
  const Sizes sizes(given_query, given_keys, given_v);
  check_tensor("gradient", given_gradient, sizes.table(), given_query.scalar_type());
  check_tensor("weights", given_weights, sizes.table(), given_query.scalar_type());
  const Tensor gradient = given_gradient.contiguous(), weights = given_weights.contiguous();
  const Tensor query = given_query.contiguous(), keys = given_keys.contiguous(), v = given_v.contiguous();
  const Tensor of_query = at::zeros_like(query), of_keys = at::zeros_like(keys);
  const Tensor of_v = at::zeros({sizes.batch, sizes.features}, v.options());
  AT_DISPATCH_FLOATING_TYPES(query.scalar_type(), "additive_attention_backward", [&] {
    run_backward(
        gradient.const_data_ptr<scalar_t>(), query.const_data_ptr<scalar_t>(), keys.const_data_ptr<scalar_t>(),
        v.const_data_ptr<scalar_t>(), weights.const_data_ptr<scalar_t>(), of_query.data_ptr<scalar_t>(),
        of_keys.data_ptr<scalar_t>(), of_v.data_ptr<scalar_t>(), sizes);
  });
  return {of_query, of_keys, of_v.sum(0)};
}

}  // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  module.def("forward", &forward, pybind11::call_guard<pybind11::gil_scoped_release>());
  module.def("backward", &backward, pybind11::call_guard<pybind11::gil_scoped_release>());
}
