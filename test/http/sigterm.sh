#!/bin/sh
# SIGTERM while h2load asks: every request that was accepted is answered, and the connections end by themselves.
. "$(dirname "$0")/common.sh"
start_server 2
h2load -D 4 -c 20 -m 10 "https://127.0.0.1:$port/bytes/7400" >"$work/report" 2>&1 &
load=$!
sleep 1.5
kill -TERM "$server_pid"
wait "$server_pid" && status=0 || status=$?
server_pid=
wait "$load" || true
# h2load also counts as failed what it wanted to ask after the GOAWAY and never sent; what counts is what the server took.
taken=$(sed -n 's/^\([0-9]*\) requests, .*/\1/p' "$work/address")
answered=$(sed -n 's/.*requests, \([0-9]*\) answered/\1/p' "$work/address")
succeeded=$(sed -n 's/^requests:.* \([0-9]*\) succeeded.*/\1/p' "$work/report")
echo "server exit status $status: $taken requests taken, $answered answered; h2load saw $succeeded answers"
[ "$status" = 0 ] && [ "$taken" = "$answered" ] && [ "$succeeded" = "$taken" ]
