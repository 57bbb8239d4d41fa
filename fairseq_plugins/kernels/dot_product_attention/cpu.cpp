// Attention of a few queries on CPUs: softmax(scale q k^T + mask) v. Keys and values are read where they lie, whatever the
// order of heads and positions. Sentences are split over the threads.

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/utils/pybind.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "cpu/checks.h"
#include "cpu/vectors.h"

namespace {

using at::Tensor;
using fairseq_plugins::check;
using fairseq_plugins::check_dimensions;
using fairseq_plugins::check_tensor;
using fairseq_plugins::for_each_vector;
using fairseq_plugins::load;
using fairseq_plugins::store;
using fairseq_plugins::Vector;
using fairseq_plugins::Whole;

// Numbers of a tensor (N, A, X, Y): the last dimension lies together.
template <typename T>
struct Rows {
  T* data;
  int64_t of_sentence, of_head, of_row;

  explicit Rows(const Tensor& tensor)
      : data(static_cast<T*>(tensor.data_ptr())), of_sentence(tensor.stride(0)), of_head(tensor.stride(1)),
        of_row(tensor.stride(2)) {}

  T* at(int64_t n, int64_t a, int64_t row) const { return data + n * of_sentence + a * of_head + row * of_row; }
};

template <typename T>
T dot(const T* x, const T* y, int64_t size) {
  constexpr Whole<T> whole;
  constexpr int64_t width = whole;
  // Four sums: one would wait for itself.
  Vector<T> sums[4] = {Vector<T>(T(0)), Vector<T>(T(0)), Vector<T>(T(0)), Vector<T>(T(0))};
  int64_t k = 0;
  for (; k + 4 * width <= size; k += 4 * width) {
    for (int64_t i = 0; i < 4; i++) {
      sums[i] = at::vec::fmadd(load(x + k + i * width, whole), load(y + k + i * width, whole), sums[i]);
    }
  }
  for_each_vector<T>(size - k, [&](int64_t i, auto n) {
    sums[0] = at::vec::fmadd(load(x + k + i, n), load(y + k + i, n), sums[0]);
  });
  return fairseq_plugins::sum_of((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

template <typename T>
void run(
    const Tensor& query, const Tensor& keys, const Tensor& values, const std::optional<Tensor>& mask, T scale,
    const Tensor& context) {
  const int64_t sentences = query.size(0), heads = query.size(1), queries = query.size(2), size = query.size(3);
  const int64_t positions = keys.size(2);
  const Rows<const T> q(query), k(keys), v(values), m(mask ? *mask : query);
  const Rows<T> c(context);
  at::parallel_for(0, sentences, 1, [&](int64_t first, int64_t last) {
    std::vector<T> weights(positions);
    for (int64_t n = first; n < last; n++) {
      for (int64_t a = 0; a < heads; a++) {
        for (int64_t t = 0; t < queries; t++) {
          for (int64_t s = 0; s < positions; s++) {
            weights[s] = scale * dot<T>(q.at(n, a, t), k.at(n, a, s), size);
          }
          if (mask) {
            for (int64_t s = 0; s < positions; s++) weights[s] += m.at(n, a, t)[s];
          }
          fairseq_plugins::softmax(weights.data(), positions);
          T* to = c.at(n, a, t);
          std::fill_n(to, size, T(0));
          for (int64_t s = 0; s < positions; s++) {
            // Of padding.
            if (weights[s] == 0) continue;
            const Vector<T> weight(weights[s]);
            const T* from = v.at(n, a, s);
            for_each_vector<T>(size, [&](int64_t i, auto count) {
              store(at::vec::fmadd(weight, load(from + i, count), load(to + i, count)), to + i, count);
            });
          }
        }
      }
    }
  });
}

// A tensor of which the last dimension lies together.
Tensor readable(const Tensor& tensor) { return tensor.stride(-1) == 1 ? tensor : tensor.contiguous(); }

// query (N, A, T, d), keys and values (N, A, S, d), mask of bool or of their type -> (N, A, T, d), laid out (N, T, A, d)
Tensor dot_product_attention(
    const Tensor& query, const Tensor& keys, const Tensor& values, const std::optional<Tensor>& mask, double scale) {
  check_dimensions("query", query, 4);
  check_dimensions("keys", keys, 4);
  const int64_t sentences = query.size(0), heads = query.size(1), queries = query.size(2), size = query.size(3);
  const auto type = query.scalar_type();
  check_tensor("query", query, query.sizes(), type);
  check_tensor("keys", keys, {sentences, heads, keys.size(2), size}, type);
  check_tensor("values", values, keys.sizes(), type);
  std::optional<Tensor> added;
  if (mask) {
    added = mask->scalar_type() != at::kBool
        ? *mask
        : at::zeros(mask->sizes(), query.options())
              .masked_fill_(mask->logical_not(), -std::numeric_limits<double>::infinity());
    added = readable(added->expand({sentences, heads, queries, keys.size(2)}));
    check_tensor("mask", added, added->sizes(), type);
  }
  const Tensor context = at::empty({sentences, queries, heads, size}, query.options()).transpose(1, 2);
  AT_DISPATCH_FLOATING_TYPES(type, "dot_product_attention", [&] {
    run<scalar_t>(readable(query), readable(keys), readable(values), added, static_cast<scalar_t>(scale), context);
  });
  return context;
}

}  // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  module.def(
      "dot_product_attention", &dot_product_attention, pybind11::call_guard<pybind11::gil_scoped_release>());
}
