"""A cluster of Ray's with two nodes on this machine, each with one CPU, for tests.

It prints the cluster's address, then obeys lines of standard input: "kill" kills the second node, the end ends all.
"""
from __future__ import annotations

import os
import signal
import sys

from ray.cluster_utils import Cluster

SETTINGS = {"num_cpus": 1, "object_store_memory": 150 << 20, "include_dashboard": False}


def main() -> None:
    cluster = Cluster(initialize_head=True, head_node_args=SETTINGS)
    node = cluster.add_node(**SETTINGS)
    print(cluster.address, flush=True)
    for line in sys.stdin:
        if line.strip() == "kill":
            for processes in node.all_processes.values():
                for each in processes:
                    os.kill(each.process.pid, signal.SIGKILL)
    cluster.shutdown()


if __name__ == "__main__":
    main()
