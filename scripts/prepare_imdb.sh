#!/usr/bin/env bash
# Prepares IMDb's reviews of films, out of the folders as they are published.
#
#   scripts/prepare_imdb.sh --input aclImdb --output work/imdb/data
#
# --help lists all options.
set -euo pipefail
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/common.sh"
exec_module corpora.imdb "$@"
