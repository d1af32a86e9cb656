#!/bin/sh
# Memory of idle HTTP/2 connections with a watch each: below 40 kB for each, below 2 kB for each further watch, and an event reaches all.
# idle_watches.sh [connections]. Needs h2load and a limit of open files above the number of connections.
. "$(dirname "$0")/common.sh"
connections=${1:-5000}
ulimit -n $((connections + 1000))

measure() { # watches per connection
  start_server
  idle=$(resident_kb)
  timeout 900 h2load -c "$connections" -n $((connections * $1)) -m "$1" "https://127.0.0.1:$port/watch" >/dev/null 2>&1 &
  load=$!
  for _ in $(seq 5000); do # patience for a busy machine
    count=$(curl -sk "https://127.0.0.1:$port/watchers")
    [ "$count" = $((connections * $1)) ] && break
    sleep 0.1
  done
  [ "$count" = $((connections * $1)) ] || { echo "only $count watches were opened"; exit 1; }
  used=$(($(resident_kb) - idle))
  before=$(curl -sk "https://127.0.0.1:$port/delivered")
  curl -sk "https://127.0.0.1:$port/event" >/dev/null
  for _ in $(seq 1000); do
    delivered=$(($(curl -sk "https://127.0.0.1:$port/delivered") - before))
    [ "$delivered" = $((connections * $1)) ] && break
    sleep 0.1
  done
  [ "$delivered" = $((connections * $1)) ] || { echo "the event reached only $delivered watches"; exit 1; }
  kill "$load" 2>/dev/null || true
  kill "$server_pid"
  wait "$server_pid" 2>/dev/null || true
  server_pid=
}

measure 1
one=$used
measure 10
ten=$used
per_connection=$((one * 1000 / connections))
per_watch=$(((ten - one) * 1000 / (connections * 9)))
echo "$connections connections with a watch: $((per_connection / 1000)).$(printf %03d $((per_connection % 1000))) kB each; each further watch $((per_watch / 1000)).$(printf %03d $((per_watch % 1000))) kB"
[ "$per_connection" -lt 40000 ] && [ "$per_watch" -lt 2000 ]
