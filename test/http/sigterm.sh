#!/bin/sh
# SIGTERM while h2load asks: every request that was accepted is answered, and the connections end by themselves.
. "$(dirname "$0")/common.sh"
start_server 2
h2load -D 4 -c 20 -m 10 --log-file="$work/requests" "https://127.0.0.1:$port/bytes/7400" >"$work/report" 2>&1 &
load=$!
sleep 1.5
kill -TERM "$server_pid"
wait "$server_pid" && status=0 || status=$?
server_pid=
wait "$load" || true
grep '^requests:' "$work/report"
echo "server exit status $status"
bad=$(awk '$2 != 200' "$work/requests" | wc -l)
echo "$(wc -l <"$work/requests") answers, $bad without status 200"
[ "$status" = 0 ] && [ "$bad" = 0 ]
