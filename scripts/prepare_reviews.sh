#!/usr/bin/env bash
# Prepares one of the 16 review sets of Liu, Qiu and Huang (2017).
#
#   scripts/prepare_reviews.sh --input amazon_reviews --set books --max-length 400 \
#     --output work/reviews_books/data
#
# --max-length 400 is what configs/reviews takes. The folder holds books.task.train, books.task.test and so on (plain or .gz). --help lists the sets.
set -euo pipefail
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/common.sh"
exec_module corpora.reviews "$@"
