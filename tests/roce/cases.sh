#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 the ferry authors
#
# In the guest of tests/roce/vm: runs everything that needs RDMA, each program within its limit.
#
# usage: cases.sh BUILD_DIR RESULTS_DIR      leaves a file of results of each program there
set -u
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

program() {
  in_time "$1" "$2" "$build/bin/$1" --gtest_brief=1 "--gtest_output=xml:$results/$1.xml" || true
}

program verbs_contract_test 200
exit "$status"
