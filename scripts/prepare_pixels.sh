#!/usr/bin/env bash
# Prepares MNIST's digits pixel by pixel: plain, permuted, or with noise after them.
#
#   scripts/prepare_pixels.sh --input mnist --output work/pixel_mnist/data
#   scripts/prepare_pixels.sh --input mnist --permute --output work/permuted_mnist/data
#   scripts/prepare_pixels.sh --input mnist --length 1000 --output work/noisy_mnist_1000/data
#
# The folder holds MNIST's four idx files (plain or .gz); --small takes 1,797 digits of 8 by 8 pixels that scikit-learn has.
# --help lists all options.
set -euo pipefail
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/common.sh"
exec_module corpora.generated_sequences pixels "$@"
