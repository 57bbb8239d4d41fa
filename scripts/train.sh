#!/usr/bin/env bash
# Trains the model of a configuration, going on where an earlier run of the same work folder stopped.
#
#   scripts/train.sh CONFIG [--work DIR] [--data DIR] [--gpus N] [--restart] [FAIRSEQ-TRAIN OPTIONS...]
#
#   CONFIG      a YAML file, for example configs/iwslt14_de_en/mc_rnn_3.yaml
#   --work DIR  where checkpoints/, train.log, train.jsonl and results.json go (work/<dataset>/<model> by default)
#   --data DIR  the prepared data, a folder that holds bin/ and preparation.json (work/<dataset>/data by default)
#   --gpus N    how many GPUs of this machine to use, 0 for the CPU (all there are by default)
#   --restart   delete what was trained in the work folder before, its scores and translations too, and train anew
#
# A work folder is of one training: it keeps the options, the checksums of the data and the revision that it was started
# with (training.json). Limits (--max-update, --max-epoch, --patience), workers, logging and the device may change when the
# training goes on, --gpus and --update-freq if the batch stays the same. Anything else needs --restart or another --work.
#
# A configuration may name files of your own with layers or metrics, which lie beside it: extensions: [my_layer.py]
#
# Several GPUs share the batch of the configuration: --update-freq is divided among them, then --max-tokens or
# --batch-size; where that does not come out even, a line says how large the batch is.
#
# The training keeps the memory that it frees, which saves a fifth to a quarter of the time on a CPU: glibc's variables
# MALLOC_MMAP_THRESHOLD_, MALLOC_TRIM_THRESHOLD_ and MALLOC_TOP_PAD_ are set for it. Those that you set yourself win.
#
# Further options are passed on to fairseq-train and win over the configuration: scripts/train.sh CONFIG --max-epoch 3
# The exact fairseq-train command is printed first, so that it can be copied.
#
# Across machines, run that command under torchrun on each of them, with the number of all GPUs at its end; the batch is then
# as many times larger as there are more of them. For example on 2 machines with 8 GPUs each:
#   torchrun --no-python --nnodes 2 --nproc-per-node 8 --rdzv-backend c10d --rdzv-endpoint HOST:29500 \
#     fairseq-train ... --distributed-world-size 16
set -euo pipefail
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/common.sh"
[[ $# -ge 1 ]] || { print_help >&2; exit 2; }
[[ $1 != --help && $1 != -h ]] || { print_help; exit 0; }
exec_module experiments.train "$@"
