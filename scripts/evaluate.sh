#!/usr/bin/env bash
# Translates a test set with the model that scripts/train.sh trained, and scores it by the metric that the data is prepared
# for, or that the configuration names (evaluate: {metric: NAME}).
#
#   scripts/evaluate.sh CONFIG [--work DIR] [--data DIR] [--checkpoint FILE] [--average N] [--subset NAME] [--gpus N]
#                       [--record] [--sacrebleu-tokenize NAME] [--rouge-tokenize NAME] [FAIRSEQ-GENERATE OPTIONS...]
#
#   CONFIG             the YAML file that was given to scripts/train.sh
#   --work DIR         the work folder that was given to scripts/train.sh (work/<dataset>/<model> by default)
#   --data DIR         the prepared data (work/<dataset>/data by default)
#   --checkpoint FILE  instead of the best checkpoint; FILE:FILE is an ensemble
#   --average N        the mean of the last N epochs' checkpoints instead of one
#   --subset NAME      which of the prepared sets: test (the default), valid, test1 ..., or by its own name: nist05
#   --gpus N           0 for the CPU, 1 for a GPU (a GPU where there is one by default)
#   --record           also writes the run to results/<dataset>/<model>/, for the tables of docs/results.md; then run
#                      scripts/update_docs.sh. What the scores are sums of, sentence by sentence, is in a .npz file
#                      beside it. FAIRSEQ_PLUGINS_RESULTS=DIR takes another folder than results/
#   --sacrebleu-tokenize NAME
#                      what cuts text for sacreBLEU: 13a, zh, ja-mecab, ko-mecab, intl, char ...; the language decides by
#                      default
#   --rouge-tokenize NAME
#                      what ROUGE counts: rouge-score (runs of a-z and 0-9) or unicode (words of all letters); the
#                      language decides by default
#
# Further options are passed on to fairseq-generate and win over the configuration: scripts/evaluate.sh CONFIG --beam 10
# Of classifiers and rankers fairseq-validate is run instead, and generate/<subset>.predicted.tsv says what they predict.
# Writes generate/<subset>.log (fairseq-generate's output, in subwords and therefore not scored there),
# generate/<subset>.tok.<language> (tokens), generate/<subset>.<language> (text) and
# generate/<subset>.log_probabilities.<language> (natural logarithms, one for each subword and the sentence's end), all in
# the order of the set, and the scores to results.json.
#
# Of a language model (docs/language_models.md) each token's probability is written, generate/<subset>.log_probabilities.txt.
# --cache reads the set with the continuous cache, and keeps those results apart ("test with cache").
set -euo pipefail
source "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/common.sh"
[[ $# -ge 1 ]] || { print_help >&2; exit 2; }
[[ $1 != --help && $1 != -h ]] || { print_help; exit 0; }
exec_module experiments.evaluate "$@"
