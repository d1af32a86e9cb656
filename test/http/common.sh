# Shared by the scripts of this folder: a throw-away certificate and the example server on a free port.
set -eu
build=${BUILD:-build/release}
work=$(mktemp -d)
server_pid=
cleanup() {
  [ -z "$server_pid" ] || kill "$server_pid" 2>/dev/null || true
  rm -rf "$work"
}
trap cleanup EXIT

start_server() { # [threads]
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$work/key.pem" -out "$work/cert.pem" -days 2 \
    -subj /CN=localhost -addext subjectAltName=DNS:localhost,IP:127.0.0.1 2>/dev/null
  start_example "$work/cert.pem" "$work/key.pem" "${1:-1}"
}

start_example() { # [certificate key threads]: without them no TLS
  "$build/src/http/http_example" 0 "$@" >"$work/address" 2>"$work/log" &
  server_pid=$!
  for _ in $(seq 100); do
    [ -s "$work/address" ] && break
    sleep 0.05
  done
  address=$(cat "$work/address")
  port=${address##*:}
}

resident_kb() { awk '/^VmRSS/ {print $2}' "/proc/$server_pid/status"; }
