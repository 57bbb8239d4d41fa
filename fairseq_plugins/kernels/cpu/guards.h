// What holds for torch's operations inside a kernel.

#pragma once

#include <c10/core/GradMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

namespace fairseq_plugins {

// While it lives, in its thread: autograd records nothing, and a product has the precision of its factors. Under
// autocast at::mm would return half precision where the kernel has chosen single.
struct KernelGuard {
  const c10::NoGradGuard no_grad;
  const c10::impl::ExcludeDispatchKeyGuard no_autocast{c10::autocast_dispatch_keyset};
};

}  // namespace fairseq_plugins
