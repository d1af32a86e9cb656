#!/usr/bin/env python3
"""Load of a cluster of N nodes on its API servers, computed from measured costs. usage: bench/scale.py [SERVERS]

Prints the table of docs/scale.md. Costs are CPU times of one core of the machine in bench/results; where each comes from is beside it.
"""
import sys

# Measured (bench/results/2026-11-16.md, 2026-11-17-servers.md, docs/http.md).
WRITE = 585e-6       # s: merge-patch a pod of 7.6 kB; leases are smaller
FOLLOW = 165e-6      # s: a write that another server took, in each server that follows
ETCD_WRITE = 700e-6  # s: a write, in etcd
EVENT = 19e-6        # s: a watch event, several watches on a connection
POD_BYTES = 7.1e3    # resident memory per pod, nothing kept as JSON
NODE_BYTES = 12e3    # the same for a node, by its larger object
CONNECTION_BYTES = 31e3
WATCH_BYTES = 1.6e3
POD_STORED = 5.7e3   # protobuf on disk

# Assumed load of a cluster.
PODS_PER_NODE = 30
LEASE_SECONDS = 10          # kubelet's renewal
NODE_STATUS_SECONDS = 300   # kubelet's report of an unchanged status
POD_LIFE_SECONDS = 6 * 3600
WRITES_PER_POD = 6          # create, bind, three of the status, delete
EVENTS_PER_POD_WRITE = 4    # kubelet, scheduler, controller manager, one more
CONNECTIONS_PER_NODE = 2    # kubelet, kube-proxy
WATCHES_PER_NODE = 12
SLICE_CHANGES_PER_1000_NODES = 0.02  # a second; each goes to every node


def rows(nodes, servers):
    pods = nodes * PODS_PER_NODE
    leases, statuses = nodes / LEASE_SECONDS, nodes / NODE_STATUS_SECONDS
    pod_writes = pods / POD_LIFE_SECONDS * WRITES_PER_POD
    writes = leases + statuses + pod_writes
    slices = SLICE_CHANGES_PER_1000_NODES * nodes / 1000
    events = pod_writes * EVENTS_PER_POD_WRITE + slices * nodes
    per_server = writes / servers * WRITE + writes * (servers - 1) / servers * FOLLOW + events / servers * EVENT
    memory = pods * POD_BYTES + nodes * NODE_BYTES + nodes * (CONNECTIONS_PER_NODE * CONNECTION_BYTES + WATCHES_PER_NODE * WATCH_BYTES) / servers
    return ["%d" % pods, "%.0f" % leases, "%.0f" % pod_writes, "%.0f" % writes, "%.0f" % (slices * nodes), "%.0f" % events, "%.2f" % per_server, "%.2f" % (writes * ETCD_WRITE),
            "%.1f GB" % (memory / 1e9), "%.1f GB" % (pods * POD_STORED / 1e9)]


NAMES = ["pods", "lease renewals per second", "writes of pods per second", "writes per second", "events of EndpointSlices per second", "watch events per second",
         "cores, each server", "cores, etcd", "memory, each server", "pods on disk"]


def main():
    servers = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    sizes = (1000, 5000, 15000, 50000, 100000)
    print("| nodes, %d servers | %s |" % (servers, " | ".join("%d" % size for size in sizes)))
    print("|---|%s" % ("---:|" * len(sizes)))
    columns = [rows(size, servers) for size in sizes]
    for i, name in enumerate(NAMES):
        print("| %s | %s |" % (name, " | ".join(column[i] for column in columns)))


main()
