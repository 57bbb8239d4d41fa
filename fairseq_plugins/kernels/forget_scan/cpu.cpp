// Eq. 15 of RCRN on CPUs: c(t) = gate(t) c(t - 1) + (1 - gate(t)) candidate(t), forward and backward. reference.py reads
// like the paper; this file is held to it. Rows of the batch and features are one dimension of independent columns, which
// is split over the threads; every thread runs its columns from the first step to the last.

#include <ATen/Dispatch.h>
#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_like.h>
#include <torch/csrc/utils/pybind.h>

#include <tuple>

#include "cpu/checks.h"

namespace {

using at::Tensor;
using fairseq_plugins::check_tensor;

// Columns that are worth a thread of their own.
constexpr int64_t grain = 256;

template <typename T>
void run_forward(const T* gate, const T* candidate, const T* initial, T* c, int64_t steps, int64_t columns) {
  at::parallel_for(0, columns, grain, [&](int64_t first, int64_t last) {
    const T* before = initial;
    for (int64_t t = 0; t < steps; t++) {
      const T* g = gate + t * columns;
      const T* x = candidate + t * columns;
      T* now = c + t * columns;
#pragma omp simd
      for (int64_t k = first; k < last; k++) now[k] = g[k] * before[k] + (1 - g[k]) * x[k];
      before = now;
    }
  });
}

template <typename T>
void run_backward(
    const T* gradient, const T* gate, const T* candidate, const T* initial, const T* c, T* of_gate, T* of_candidate,
    T* of_initial, int64_t steps, int64_t columns) {
  at::parallel_for(0, columns, grain, [&](int64_t first, int64_t last) {
    // What c(t) gets from c(t + 1), and after the first step what the initial c gets.
    for (int64_t k = first; k < last; k++) of_initial[k] = 0;
    for (int64_t t = steps - 1; t >= 0; t--) {
      const int64_t row = t * columns;
      const T *dc = gradient + row, *g = gate + row, *x = candidate + row;
      const T* before = t > 0 ? c + row - columns : initial;
      T *dg = of_gate + row, *dx = of_candidate + row;
#pragma omp simd
      for (int64_t k = first; k < last; k++) {
        const T whole = dc[k] + of_initial[k];
        dg[k] = whole * (before[k] - x[k]);
        dx[k] = whole * (1 - g[k]);
        of_initial[k] = whole * g[k];
      }
    }
  });
}

void check_inputs(const Tensor& gate, const Tensor& candidate, const Tensor& initial) {
  fairseq_plugins::check(gate.defined() && gate.dim() > 0, "gate must have a dimension of time");
  const auto type = gate.scalar_type();
  check_tensor("gate", gate, gate.sizes(), type);
  check_tensor("candidate", candidate, gate.sizes(), type);
  check_tensor("initial", initial, gate.sizes().slice(1), type);
}

// gate, candidate (T, ...), initial (...) -> c (T, ...)
Tensor forward(const Tensor& gate, const Tensor& candidate, const Tensor& initial) {
  check_inputs(gate, candidate, initial);
  const Tensor g = gate.contiguous(), x = candidate.contiguous(), start = initial.contiguous();
  const Tensor c = at::empty_like(g);
  AT_DISPATCH_FLOATING_TYPES(g.scalar_type(), "forget_scan", [&] {
    run_forward(
        g.const_data_ptr<scalar_t>(), x.const_data_ptr<scalar_t>(), start.const_data_ptr<scalar_t>(),
        c.data_ptr<scalar_t>(), g.size(0), start.numel());
  });
  return c;
}

// The gradients of gate, candidate and initial.
std::tuple<Tensor, Tensor, Tensor> backward(
    const Tensor& gradient, const Tensor& gate, const Tensor& candidate, const Tensor& initial, const Tensor& c) {
  check_inputs(gate, candidate, initial);
  check_tensor("gradient", gradient, gate.sizes(), gate.scalar_type());
  check_tensor("c", c, gate.sizes(), gate.scalar_type());
  const Tensor dc = gradient.contiguous(), g = gate.contiguous(), x = candidate.contiguous();
  const Tensor start = initial.contiguous(), after = c.contiguous();
  const Tensor of_gate = at::empty_like(g), of_candidate = at::empty_like(g), of_initial = at::empty_like(start);
  AT_DISPATCH_FLOATING_TYPES(g.scalar_type(), "forget_scan_backward", [&] {
    run_backward(
        dc.const_data_ptr<scalar_t>(), g.const_data_ptr<scalar_t>(), x.const_data_ptr<scalar_t>(),
        start.const_data_ptr<scalar_t>(), after.const_data_ptr<scalar_t>(), of_gate.data_ptr<scalar_t>(),
        of_candidate.data_ptr<scalar_t>(), of_initial.data_ptr<scalar_t>(), g.size(0), start.numel());
  });
  return {of_gate, of_candidate, of_initial};
}

}  // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  module.def("forward", &forward, pybind11::call_guard<pybind11::gil_scoped_release>());
  module.def("backward", &backward, pybind11::call_guard<pybind11::gil_scoped_release>());
}
