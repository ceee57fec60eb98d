#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 the ferry authors
#
# In the guest of tests/roce/vm: runs everything that needs RDMA, each program within its limit.
#
# usage: cases.sh BUILD_DIR RESULTS_DIR      leaves a file of results of each case there
#        cases.sh --names                    says what the cases are called
set -u
programs=(verbs_contract_test exchange_over_verbs_test)
decoding=decodes_tiny_A_on_two_nodes_with_the_bits_of_one
if [[ $1 == --names ]]; then
  printf '%s\n' "${programs[@]}" "$decoding"
  exit 0
fi
build=$1 results=$2
sources=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
status=0

# in_time NAME SECONDS COMMAND...
in_time() {
  local name=$1 seconds=$2 ended=0
  shift 2
  timeout -k 10 "$seconds" "$@" </dev/null || ended=$?
  printf '== %s ended with %s, guest up %s s\n' "$name" "$ended" "$(cut -d' ' -f1 /proc/uptime)"
  ((ended == 0)) || status=1
  return "$ended"
}

# one_case NAME OUTCOME_ELEMENT: in the form that GoogleTest has.
one_case() {
  printf '<testsuites><testsuite><testcase classname="roce" name="%s" status="run" result="completed" time="0">%s</testcase></testsuite></testsuites>\n' \
    "$1" "$2" >"$results/$1.xml"
}

program() {
  in_time "$1" "$2" "$build/bin/$1" --gtest_brief=1 "--gtest_output=xml:$results/$1.xml" || true
  # What is not there, or breaks off, writes none.
  [[ -s $results/$1.xml ]] || one_case "$1" '<failure message="it left no results"/>'
}

script_case() {
  local name=$1 seconds=$2 failure=''
  shift 2
  in_time "$name" "$seconds" python3 -B "$@" || failure='<failure message="see the output"/>'
  one_case "$name" "$failure"
}

program verbs_contract_test 200
program exchange_over_verbs_test 420
script_case "$decoding" 180 "$sources/tests/decode/golden_test.py" nodes \
  --program "$build/bin/ferry-decode" --models "$build/tests/models" --demo "$sources/examples/decode/model" \
  --model tiny-A --ranks 4
exit "$status"
