// One layer of the multi-channel RNN (MC-RNN, Eq. 1 to 6) on CPUs: recurrence and attention over channels, forward and
// backward, a whole sequence or a step at a time. reference.py reads like the paper; this is held to it. With one channel
// and no attention it is HO-RNN, or a conventional layer.
//
// W_j reads the slots 0 ... C - j of its lag at every step, and the output of slot i goes to slot (i + 1) mod C of the next
// step (symbols in layer.h). The batch is split over the threads. What gradients and the LSTM's cell state are summed in is
// Compute<S> (cpu/vectors.h) throughout.

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/utils/pybind.h>

#include <map>

#include "cpu/guards.h"
#include "cpu/threads.h"
#include "sequence.h"

namespace fairseq_plugins::multi_channel {
namespace {

// Gates of a step of one chunk stay in a core's cache.
std::vector<int64_t> boundaries(const Weights& weights, int64_t batch) {
  return chunk_boundaries(
      batch, weights.specification.channels * weights.width() * weights.weight_connection.element_size());
}

// A step of which nothing is kept writes little, and its products are faster with many rows: a chunk for each thread.
std::vector<int64_t> step_boundaries(const Weights& weights, int64_t batch, bool keep) {
  return keep ? boundaries(weights, batch) : chunk_boundaries(batch, 1);
}

std::vector<Chunk> run_forward(
    const Weights& weights, const Products& products, const Inputs& inputs, const std::vector<int64_t>& first, bool keep,
    Outputs& outputs) {
  std::vector<Chunk> chunks(first.size() - 1);
  const bool has_history = inputs.has_history();
  for_each_chunk(inputs.projected.scalar_type(), chunks.size(), [&](auto number, int64_t i) {
    chunks[i] = forward_chunk<decltype(number)>(
        weights, products, inputs, has_history, first[i], first[i + 1] - first[i], keep, outputs);
  });
  return chunks;
}

InputGradients run_backward(
    const Weights& weights, const Products& transposed, const Inputs& inputs, const std::vector<Chunk>& chunks,
    const Tensor& alpha, const OutputGradients& upstream, bool needs_history,
    std::vector<WeightGradients>* weight_gradients) {
  const auto options = inputs.projected.options();
  InputGradients gradients;
  gradients.projected = inputs.projected;  // the backward pass does not read it
  if (weights.specification.cell == Cell::gru) {
    gradients.inside = at::empty(
        {inputs.steps(), inputs.batch(), weights.hidden()}, options.dtype(compute_type(options.dtype().toScalarType())));
  }
  if (needs_history) {
    gradients.history = at::empty_like(inputs.history);
    gradients.cell_state = at::empty_like(inputs.cell_state);
  }
  if (weight_gradients && weight_gradients->size() < chunks.size()) weight_gradients->resize(chunks.size());
  for_each_chunk(options.dtype().toScalarType(), chunks.size(), [&](auto number, int64_t i) {
    backward_chunk<decltype(number)>(
        weights, transposed, inputs, chunks[i], alpha, upstream, gradients,
        weight_gradients ? &(*weight_gradients)[i] : nullptr);
  });
  return gradients;
}

// projected, alpha, and the buffers of each chunk.
std::vector<Tensor> saved_of(const Inputs& inputs, const Outputs& outputs, const std::vector<Chunk>& chunks) {
  std::vector<Tensor> saved{inputs.projected, outputs.alpha};
  for (const Chunk& chunk : chunks) {
    for (const Tensor& buffer : chunk.saved()) saved.push_back(buffer);
  }
  return saved;
}

std::vector<Chunk> chunks_of(const std::vector<Tensor>& saved) {
  std::vector<Chunk> chunks;
  int64_t first = 0;
  for (auto at = saved.begin() + 2; at != saved.end(); at += Chunk::saved_tensors) {
    chunks.push_back(chunk_of(first, {at, at + Chunk::saved_tensors}));
    first += chunks.back().rows;
  }
  return chunks;
}

Tensor stacked(const std::vector<Tensor>& tensors) { return tensors.empty() ? Tensor() : at::stack(tensors); }

// x (T, B, D) -> Inputs::projected (T, B, G + A).
Tensor project(const Weights& weights, const Product& input, const Tensor& x) {
  return input(x.reshape({-1, x.size(-1)})).view({x.size(0), x.size(1), weights.projected()});
}

// What a call reads of a sequence: x (T, B, D), history (B, L, C, H), cell state (B, C, H or 0), lengths (B,).
using Call = std::tuple<Tensor, Tensor, Tensor, OptionalTensor>;

using ForwardResult = std::tuple<Tensor, Tensor, Tensor, Tensor, std::vector<Tensor>>;

// A whole sequence. Returns output (T, B, H), channel attention in slot order (T, B, C), the last history and cell state of
// each row, and what backward needs; nothing unless `keep`.
ForwardResult forward(const Weights& weights, const Call& call, bool keep) {
  const KernelGuard guard;
  const auto& [x, history, cell_state, lengths] = call;
  check_dimensions("input", x, 3);
  check_call(weights, x, x.size(0), history, cell_state, lengths);
  const Product input(weights.weight_input, x.size(0) * x.size(1), weights.bias_input);
  const Inputs inputs(project(weights, input, x), history, cell_state, lengths);
  const auto first = boundaries(weights, inputs.batch());
  const Products products(weights, largest_chunk(first), keep ? inputs.steps() : 1, false);
  Outputs outputs(weights, inputs);
  const auto chunks = run_forward(weights, products, inputs, first, keep, outputs);
  return {
      outputs.output, outputs.alpha, outputs.history, outputs.cell_state,
      keep ? saved_of(inputs, outputs, chunks) : std::vector<Tensor>()};
}

// `upstream` are the gradients of forward's output, attention, history and cell state. Returns those of x, history, cell
// state, weight_input, bias_input, candidate_bias, weight_hh, weight_connection, v_hidden and score; none where there is
// none. Overwrites the saved buffers.
std::vector<OptionalTensor> backward(
    const Weights& weights, const Call& call, const std::vector<Tensor>& saved,
    const std::vector<OptionalTensor>& upstream, bool needs_x, bool needs_state) {
  const KernelGuard guard;
  const auto& [x, history, cell_state, lengths] = call;
  check_dimensions("input", x, 3);
  check_call(weights, x, x.size(0), history, cell_state, lengths);
  check_saved(weights, x.size(0), x.size(1), saved);
  check(upstream.size() == 4, "there must be 4 gradients, not ", upstream.size());
  const Inputs inputs(saved[0], history, cell_state, lengths);
  const auto chunks = chunks_of(saved);
  const Products transposed(weights, chunks.back().rows, inputs.steps(), true);
  const auto& [grad_output, grad_alpha, grad_history, grad_cell_state] =
      std::tie(upstream[0], upstream[1], upstream[2], upstream[3]);
  const bool is_attention_alone = grad_alpha && !grad_output;
  const OutputGradients of_outputs(
      weights, inputs,
      is_attention_alone ? OptionalTensor(at::zeros({inputs.steps(), inputs.batch(), weights.hidden()}, x.options()))
                         : grad_output,
      grad_alpha, grad_history, grad_cell_state);
  std::vector<WeightGradients> by_chunk;
  const InputGradients gradients =
      run_backward(weights, transposed, inputs, chunks, saved[1], of_outputs, needs_state, &by_chunk);
  WeightGradients sum;
  for (const auto& part : by_chunk) sum.add(part);
  const Tensor rows = x.reshape({-1, x.size(-1)});
  const Tensor grad_projected = gradients.projected.view({rows.size(0), weights.projected()});
  const auto type = x.scalar_type();
  Tensor grad_x, grad_input;
  if (needs_x) grad_x = Product(weights.weight_input.t(), rows.size(0))(grad_projected).view(x.sizes());
  add_product(grad_input, grad_projected, rows);
  return {
      optional(grad_x), optional(gradients.history), optional(gradients.cell_state), grad_input, grad_projected.sum(0),
      gradients.inside.defined() ? OptionalTensor(gradients.inside.sum(at::IntArrayRef({0, 1})).to(type)) : std::nullopt,
      optional(sum.weight_hh, type), optional(stacked(sum.connections), type), optional(sum.v_hidden, type),
      optional(sum.score, type)};
}

// One layer, a step at a time: everything that is the same for all steps is prepared once, and the gradients of the
// weights are summed here until they are asked for. Each backward pass has sums of its own: one that failed halfway
// leaves some that nobody asks for.
class Steps {
 public:
  Steps(const Weights& weights, int64_t batch)
      : weights_(weights), batch_(batch), input_(weights.weight_input, batch, weights.bias_input),
        products_(
            weights, largest_chunk(step_boundaries(weights, batch, at::GradMode::is_enabled())), 1, false) {}

  // x (B, D) -> output (B, H), the next history and cell state, and what backward needs; nothing unless `keep`.
  std::tuple<Tensor, Tensor, Tensor, std::vector<Tensor>> forward(
      const Tensor& x, const Tensor& history, const Tensor& cell_state, bool keep) const {
    const KernelGuard guard;
    check_dimensions("input", x, 2);
    check_call(weights_, x, 1, history, cell_state, std::nullopt);
    const Inputs inputs(project(weights_, input_, x.unsqueeze(0)), history, cell_state, std::nullopt);
    Outputs outputs(weights_, inputs);
    const auto first = step_boundaries(weights_, inputs.batch(), keep);
    const auto chunks = run_forward(weights_, products_, inputs, first, keep, outputs);
    return {
        outputs.output[0], outputs.history, outputs.cell_state,
        keep ? saved_of(inputs, outputs, chunks) : std::vector<Tensor>()};
  }

  // `upstream` are the gradients of forward's output, history and cell state. Returns those of x, history and cell state.
  // Overwrites the saved buffers. `pass` is the number of the backward pass, where it needs the gradients of the weights.
  std::vector<Tensor> backward(
      const Tensor& x, const Tensor& history, const Tensor& cell_state, const std::vector<Tensor>& saved,
      const std::vector<OptionalTensor>& upstream, std::optional<int64_t> pass) {
    const KernelGuard guard;
    check_dimensions("input", x, 2);
    check_call(weights_, x, 1, history, cell_state, std::nullopt);
    check_saved(weights_, 1, x.size(0), saved);
    check(upstream.size() == 3, "there must be 3 gradients, not ", upstream.size());
    if (!transposed_) {
      transposed_.emplace(weights_, largest_chunk(boundaries(weights_, batch_)), 1, true);
      transposed_input_ = Product(weights_.weight_input.t(), batch_);
    }
    const Inputs inputs(saved[0], history, cell_state, std::nullopt);
    const OptionalTensor output = upstream[0] ? OptionalTensor(upstream[0]->unsqueeze(0)) : std::nullopt;
    const OutputGradients of_outputs(weights_, inputs, output, std::nullopt, upstream[1], upstream[2]);
    const InputGradients gradients = run_backward(
        weights_, *transposed_, inputs, chunks_of(saved), saved[1], of_outputs, true,
        pass ? &sums_[*pass].by_chunk : nullptr);
    const Tensor grad_projected = gradients.projected[0];
    if (pass) {
      Sums& sums = sums_[*pass];
      add_product(sums.input, grad_projected, x);
      add(sums.bias, grad_projected.sum(0));
      if (gradients.inside.defined()) add(sums.inside, gradients.inside[0].sum(0));
    }
    return {transposed_input_(grad_projected), gradients.history, gradients.cell_state};
  }

  // The gradients of weight_input, bias_input, candidate_bias, weight_hh, weight_connection, v_hidden and score in a
  // backward pass; another call has none.
  std::vector<OptionalTensor> take_gradients(int64_t pass) {
    const KernelGuard guard;
    const auto node = sums_.extract(pass);
    const Sums sums = node ? node.mapped() : Sums();
    WeightGradients sum;
    for (const auto& part : sums.by_chunk) sum.add(part);
    const auto type = weights_.weight_input.scalar_type();
    return {
        optional(sums.input, type), optional(sums.bias, type), optional(sums.inside, type),
        optional(sum.weight_hh, type), optional(stacked(sum.connections), type), optional(sum.v_hidden, type),
        optional(sum.score, type)};
  }

 private:
  struct Sums {
    std::vector<WeightGradients> by_chunk;
    Tensor input, bias, inside;
  };

  Weights weights_;
  int64_t batch_;
  Product input_, transposed_input_;
  Products products_;
  std::optional<Products> transposed_;
  std::map<int64_t, Sums> sums_;
};

}  // namespace
}  // namespace fairseq_plugins::multi_channel

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  namespace py = pybind11;
  using namespace fairseq_plugins;
  using namespace fairseq_plugins::multi_channel;
  const py::call_guard<py::gil_scoped_release> release;
  py::class_<Specification>(module, "Specification", py::module_local())
      .def(py::init<const std::string&, bool, const std::vector<int64_t>&, int64_t, bool, bool>());
  py::class_<Weights>(module, "Weights", py::module_local())
      .def(py::init<
           const Specification&, const Tensor&, const Tensor&, const OptionalTensor&, const OptionalTensor&,
           const Tensor&, const OptionalTensor&, const OptionalTensor&>());
  module.def("forward", &multi_channel::forward, release);
  module.def("backward", &multi_channel::backward, release);
  py::class_<Steps>(module, "Steps", py::module_local())
      .def(py::init<const Weights&, int64_t>(), release)
      .def("forward", &Steps::forward, release)
      .def("backward", &Steps::backward, release)
      .def("take_gradients", &Steps::take_gradients, release);
}
