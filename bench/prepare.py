"""Write a server.properties for each node of a measured cluster, and format its directory.

The benchmark does not include this time. The files set the same keys as the files that the duel
writes for Apache Kafka, so both systems run with the same settings.
"""

import argparse
import subprocess
import sys
from pathlib import Path

HOST = "127.0.0.1"


def properties(work: Path, node: int, nodes: int, base_port: int) -> dict[str, object]:
    copies = min(3, nodes)
    mine, controller = f"{HOST}:{base_port + node}", f"{HOST}:{base_port + 100 + node}"
    voters = ",".join(f"{n}@{HOST}:{base_port + 100 + n}" for n in range(1, nodes + 1))
    return {
        "process.roles": "broker,controller",
        "node.id": node,
        "controller.quorum.voters": voters,
        "listeners": f"PLAINTEXT://{mine},CONTROLLER://{controller}",
        "advertised.listeners": f"PLAINTEXT://{mine}",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "log.dirs": work / f"data-{node}",
        "default.replication.factor": copies,
        "min.insync.replicas": min(2, copies),
        "offsets.topic.replication.factor": copies,
        "transaction.state.log.replication.factor": copies,
        "transaction.state.log.min.isr": min(2, copies),
        "log.segment.delete.delay.ms": 1000,
    }


def main() -> None:
    args = argparse.ArgumentParser(description=__doc__)
    args.add_argument("--work", type=Path, required=True)
    args.add_argument("--nodes", type=int, required=True)
    args.add_argument("--base-port", type=int, required=True)
    opt = args.parse_args()
    tidelog = [sys.executable, "-m", "tidelog.cli.main"]
    cluster = subprocess.run(
        [*tidelog, "random-uuid"], check=True, stdout=subprocess.PIPE, text=True
    ).stdout.strip()
    for node in range(1, opt.nodes + 1):
        path = opt.work / f"server-{node}.properties"
        values = properties(opt.work, node, opt.nodes, opt.base_port)
        path.write_text("".join(f"{key}={value}\n" for key, value in values.items()))
        command = [*tidelog, "format", "--cluster-id", cluster, "--config", str(path)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
