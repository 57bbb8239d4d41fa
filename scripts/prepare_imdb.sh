#!/usr/bin/env bash
# Prepares IMDb's reviews of films, out of the folders as they are published.
#
#   scripts/prepare_imdb.sh --input aclImdb --max-length 400 --words 30000 --output work/imdb/data
#
# The limits are those of configs/imdb. --help lists all options.
set -euo pipefail
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/common.sh"
exec_module corpora.imdb "$@"
