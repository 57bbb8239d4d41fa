// Some rows of a batch from the first time step to the last, and back.

#pragma once

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include "attention.h"
#include "cells.h"

namespace fairseq_plugins::multi_channel {

// Eq. 2 before its 1/m, or the same into the gates: the sum over j of W_j h(t - j) for the output of `step`, (C, rows, N)
// into `summed`. False where it is zero, since nothing has been read yet; `summed` is left alone then.
template <typename S>
bool sum_connections(
    const Weights& weights, const Products& products, const Chunk& chunk, int64_t step, bool has_history, Tensor summed) {
  const Specification& layer = weights.specification;
  const int64_t C = layer.channels, row = layer.longest_lag() + step;
  int64_t count = 0;
  while (count < layer.terms() && (has_history || layer.lags[count] <= step)) count++;
  if (count == 0) return false;
  std::vector<Tensor> parts;
  std::vector<const S*> from;
  for (int64_t j = 0; j < count; j++) {
    parts.push_back(products.connections[j](slots_before(chunk.at(row - layer.lags[j]), layer.shift(j))));
    from.push_back(parts.back().const_data_ptr<S>());
  }
  const int64_t size = summed.size(1) * summed.size(2);
  S* to = summed.data_ptr<S>();
  for (int64_t slot = 0; slot < C; slot++) {
    const int64_t terms = layer.terms_of(slot, count);
    for_each_vector<Compute<S>>(size, [&](int64_t k, auto n) {
      auto sum = load(from[0] + slot * size + k, n);
      for (int64_t j = 1; j < terms; j++) sum = sum + load(from[j] + (slot - layer.shift(j)) * size + k, n);
      store(sum, to + slot * size + k, n);
    });
  }
  return true;
}

// Pairs the places of (L, slots, rows, H), oldest output first and the newest before row `end`, with those of a row of (B,
// L, slots, H), newest first: calls body(offset, offset) for every H numbers.
template <typename Body>
void for_each_history(const Weights& weights, const Chunk& chunk, int64_t row, int64_t end, const Body& body) {
  const int64_t H = weights.hidden(), C = weights.specification.channels, L = weights.specification.longest_lag();
  for (int64_t j = 1; j <= L; j++) {
    for (int64_t slot = 0; slot < C; slot++) {
      const int64_t at = (chunk.first + row) * L + j - 1;
      body((chunk.place(end - j) * C + slot) * chunk.rows * H + row * H, (at * C + slot) * H);
    }
  }
}

// Runs a chunk. Where nothing is kept for a backward pass, its buffers do not grow with the number of steps.
template <typename S>
Chunk forward_chunk(
    const Weights& weights, const Products& products, const Inputs& inputs, bool has_history, int64_t first, int64_t rows,
    bool keep, Outputs& outputs) {
  using T = Compute<S>;
  const Specification& layer = weights.specification;
  const int64_t H = weights.hidden(), C = layer.channels, L = layer.longest_lag(), A = weights.attention();
  const int64_t steps = inputs.steps();
  const int64_t kept = keep ? steps : 1, step_size = C * rows * H;
  const bool is_lstm = layer.cell == Cell::lstm, is_gru = layer.cell == Cell::gru;
  const auto options = inputs.projected.options();
  Chunk chunk{first, rows};
  chunk.hidden = buffer({L + kept, C, rows, H}, options);
  chunk.cell_states = buffer(
      {is_lstm ? kept + 1 : 0, C, rows, H}, options.dtype(compute_type(options.dtype().toScalarType())));
  chunk.activations = buffer({kept, C, rows, weights.width()}, options);
  chunk.temporal = buffer({layer.keeps_temporal() ? kept : 0, C, rows, H}, options);
  chunk.inner = buffer({is_gru ? kept : 0, C, rows, H}, options);

  S* hidden = chunk.hidden.data_ptr<S>();
  T* cell_states = chunk.cell_states.data_ptr<T>();
  const auto cell_state_at = [&](int64_t row, int64_t slot) { return ((first + row) * C + slot) * H; };
  // The state of a row whose last step was the one before row `end` of `hidden`.
  const auto take_state = [&](int64_t row, int64_t end, const T* cell_state) {
    S* history = outputs.history.data_ptr<S>();
    for_each_history(
        weights, chunk, row, end, [&](int64_t from, int64_t to) { copy(history + to, hidden + from, H); });
    for (int64_t slot = 0; is_lstm && slot < C; slot++) {
      copy(outputs.cell_state.data_ptr<S>() + cell_state_at(row, slot), cell_state + (slot * rows + row) * H, H);
    }
  };
  for (int64_t row = 0; row < rows; row++) {
    const S* history = inputs.history.const_data_ptr<S>();
    for_each_history(weights, chunk, row, L, [&](int64_t to, int64_t from) { copy(hidden + to, history + from, H); });
    for (int64_t slot = 0; is_lstm && slot < C; slot++) {
      copy(cell_states + (slot * rows + row) * H, inputs.cell_state.const_data_ptr<S>() + cell_state_at(row, slot), H);
    }
    if (inputs.length(first + row) == 0) take_state(row, L, cell_states);
  }

  for (int64_t step = 0; step < steps; step++) {
    const int64_t at_step = keep ? step : 0, row = L + step;
    const Tensor activations = chunk.activations[at_step];
    S* a = activations.template data_ptr<S>();
    const S* recurrent = a;
    Tensor product;
    const Tensor summed = layer.connects_states ? chunk.temporal[at_step] : activations;
    const bool is_read = sum_connections<S>(weights, products, chunk, step, has_history, summed);
    if (!is_read) {
      summed.zero_();
      activations.zero_();
    }
    if (layer.connects_states) {
      if (is_read) {
        product = products.hh(summed.view({-1, H}));
        recurrent = product.template const_data_ptr<S>();
      }
    } else if (is_gru) {
      Tensor sum = chunk.temporal[at_step];
      sum.copy_(chunk.at(row - layer.lags[0]));
      for (int64_t j = 1; j < layer.terms(); j++) {
        const int64_t shift = layer.shift(j);
        sum.narrow(0, shift, C - shift).add_(chunk.at(row - layer.lags[j]).narrow(0, 0, C - shift));
      }
    }
    const S* gates = inputs.projected.const_data_ptr<S>() + (step * inputs.batch() + first) * weights.projected();
    S* h = hidden + chunk.place(row) * step_size;
    T* after = nullptr;
    if (is_lstm) {
      const T* before = cell_states + (keep ? step : step % 2) * step_size;
      after = cell_states + (keep ? step + 1 : (step + 1) % 2) * step_size;
      const auto run = keep ? lstm_forward<S, true> : lstm_forward<S, false>;
      run(weights, chunk, gates, recurrent, a, before, after, h);
    } else if (is_gru) {
      S* temporal = chunk.temporal.data_ptr<S>() + at_step * step_size;
      S* inner = chunk.inner.data_ptr<S>() + at_step * step_size;
      gru_forward<S>(weights, chunk, gates, recurrent, a, temporal, inner, h);
    } else {
      rnn_forward<S>(weights, chunk, gates, recurrent, a, h);
    }
    for (int64_t b = 0; b < rows; b++) {
      if (inputs.length(first + b) == step + 1) take_state(b, row + 1, after);
    }
    if (!keep) {
      Tensor scores = A ? products.v(chunk.at(row).view({-1, H})) : Tensor();
      attend<S>(weights, inputs, step, first, rows, h, A ? scores.template data_ptr<S>() : nullptr, outputs);
    }
  }
  if (!keep) return chunk;

  chunk.scores = at::empty({A ? steps : 0, C, rows, A}, options);
  if (A) chunk.scores = products.v(chunk.hidden.narrow(0, L, steps).view({-1, H})).view(chunk.scores.sizes());
  for (int64_t step = 0; step < steps; step++) {
    S* scores = chunk.scores.data_ptr<S>() + (A ? step * C * rows * A : 0);
    attend<S>(weights, inputs, step, first, rows, hidden + (L + step) * step_size, scores, outputs);
  }
  return chunk;
}

template <typename S>
void backward_chunk(
    const Weights& weights, const Products& transposed, const Inputs& inputs, const Chunk& chunk, const Tensor& alpha,
    const OutputGradients& upstream, InputGradients& gradients, WeightGradients* weight_gradients) {
  using T = Compute<S>;
  const Specification& layer = weights.specification;
  const int64_t H = weights.hidden(), C = layer.channels, L = layer.longest_lag(), A = weights.attention();
  const int64_t steps = inputs.steps(), rows = chunk.rows;
  const int64_t first = chunk.first, step_size = C * rows * H;
  const bool is_lstm = layer.cell == Cell::lstm, is_gru = layer.cell == Cell::gru;
  const bool needs_history = gradients.history.defined();
  const auto options = inputs.projected.options();
  const auto sums = options.dtype(compute_type(options.dtype().toScalarType()));

  const Tensor grad_hidden = buffer(chunk.hidden.sizes(), sums), grad_score = at::zeros({A}, sums);
  T* grad_h = grad_hidden.data_ptr<T>();
  std::fill_n(grad_h, L * step_size, T(0));
  attend_backward<S>(
      weights, inputs, chunk, upstream, alpha, grad_h, gradients.projected.data_ptr<S>(), grad_score.data_ptr<T>());
  if (A) {
    const Tensor grad_scores = chunk.scores.view({-1, A});
    for (int64_t step = 0; step < steps; step++) {
      const Tensor product = transposed.v(grad_scores.narrow(0, step * C * rows, C * rows));
      add(grad_h + (L + step) * step_size, product.const_data_ptr<S>(), step_size);
    }
    if (weight_gradients) {
      add_product(weight_gradients->v_hidden, grad_scores, chunk.hidden.narrow(0, L, steps).view({-1, H}));
      add(weight_gradients->score, grad_score);
    }
  }
  if (upstream.history.defined()) {
    const S* from = upstream.history.const_data_ptr<S>();
    for (int64_t row = 0; row < rows; row++) {
      const int64_t end = L + inputs.length(first + row);
      for_each_history(weights, chunk, row, end, [&](int64_t to, int64_t at) { add(grad_h + to, from + at, H); });
    }
  }

  const Tensor carried = at::zeros({2, is_lstm ? C : 0, rows, H}, sums);
  const auto add_cell_state = [&](T* to, int64_t row) {
    const S* from = upstream.cell_state.const_data_ptr<S>() + (first + row) * C * H;
    for (int64_t slot = 0; slot < C; slot++) add(to + (slot * rows + row) * H, from + slot * H, H);
  };
  // The scores are of no more use, and of the right size. (For the GRU autograd would notice add_.)
  const Tensor grad_summed = !layer.connects_states ? chunk.activations
      : A == H && !is_gru                           ? chunk.scores
                                                    : buffer({steps, C, rows, H}, options);
  const Tensor interpolated = at::empty({is_gru ? C : 0, rows, H}, sums);
  T* c = carried.data_ptr<T>();
  for (int64_t step = steps - 1; step >= 0; step--) {
    const int64_t row = L + step;
    S* a = chunk.activations.data_ptr<S>() + step * C * rows * weights.width();
    S* gates = gradients.projected.data_ptr<S>() + (step * inputs.batch() + first) * weights.projected();
    const T* grad_output = grad_h + row * step_size;
    if (is_lstm) {
      T* now = c + (step + 1) % 2 * step_size;
      if (upstream.cell_state.defined()) {
        for (int64_t b = 0; b < rows; b++) {
          if (inputs.length(first + b) == step + 1) add_cell_state(now, b);
        }
      }
      lstm_backward<S>(weights, chunk, step, a, grad_output, now, c + step % 2 * step_size, gates);
    } else if (is_gru) {
      T* inside = gradients.inside.data_ptr<T>() + (step * inputs.batch() + first) * H;
      gru_backward<S>(weights, chunk, step, a, grad_output, interpolated.data_ptr<T>(), gates, inside);
    } else {
      rnn_backward<S>(weights, chunk, a, grad_output, gates);
    }
    if (layer.connects_states) {
      const Tensor product = transposed.hh(chunk.activations[step].view({-1, weights.width()}));
      copy(grad_summed.data_ptr<S>() + step * step_size, product.const_data_ptr<S>(), step_size);
      if (is_gru) grad_summed[step].add_(interpolated);
    }
    for (int64_t j = 0; j < layer.terms(); j++) {
      if (step < layer.lags[j] && !needs_history) break;
      T* to = grad_h + (row - layer.lags[j]) * step_size;
      const Tensor product = transposed.connections[j](slots_from(grad_summed[step], layer.shift(j)));
      add(to, product.const_data_ptr<S>(), product.numel());
      if (!layer.connects_states && is_gru) {
        add(to, interpolated.const_data_ptr<T>() + layer.shift(j) * rows * H, product.numel());
      }
    }
  }

  if (weight_gradients) {
    const int64_t connected = weights.weight_connection.size(1);
    weight_gradients->connections.resize(layer.terms());
    for (int64_t j = 0; j < layer.terms(); j++) {
      const int64_t shift = layer.shift(j), slots = C - shift;
      const Tensor source = grad_summed.narrow(1, shift, slots).reshape({-1, connected});
      const Tensor target = chunk.hidden.narrow(0, L - layer.lags[j], steps).narrow(1, 0, slots).reshape({-1, H});
      add_product(weight_gradients->connections[j], source, target);
    }
    if (layer.connects_states) {
      add_product(
          weight_gradients->weight_hh, chunk.activations.view({-1, weights.width()}), chunk.temporal.view({-1, H}));
    }
  }
  if (needs_history) {
    S* history = gradients.history.data_ptr<S>();
    for (int64_t row = 0; row < rows; row++) {
      for_each_history(weights, chunk, row, L, [&](int64_t from, int64_t to) { copy(history + to, grad_h + from, H); });
    }
  }
  if (needs_history && is_lstm) {
    for (int64_t b = 0; b < rows; b++) {
      if (upstream.cell_state.defined() && inputs.length(first + b) == 0) add_cell_state(c, b);
      S* to = gradients.cell_state.data_ptr<S>() + (first + b) * C * H;
      for (int64_t slot = 0; slot < C; slot++) copy(to + slot * H, c + (slot * rows + b) * H, H);
    }
  }
}

}  // namespace fairseq_plugins::multi_channel
