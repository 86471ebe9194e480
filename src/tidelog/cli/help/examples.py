"""One example per command, which is printed at the end of its --help."""

EXAMPLES = {
    "up": "tidelog up --brokers 3 --port 9092 --dir tidelog-data",
    "node": "tidelog node list",
    "node stop": "tidelog node stop 2",
    "node kill": "tidelog node kill 2",
    "node pause": "tidelog node pause 2",
    "node resume": "tidelog node resume 2",
    "node start": "tidelog node start 2",
    "node list": "tidelog node list --dir tidelog-data",
    "demo": "tidelog demo --pace 0.5",
    "demo acks": "tidelog demo acks",
    "serve": "tidelog serve --config server.properties --override node.id=1",
    "format": "tidelog format --config server.properties --standalone",
    "console": "tidelog console --bootstrap-server localhost:9092 --port 8080",
    "random-uuid": "tidelog random-uuid",
    "topics": "tidelog topics --create --topic hello --partitions 3",
    "configs": "tidelog configs --alter --topic hello --add-config retention.ms=3600000",
    "groups": "tidelog groups --describe --group readme",
    "transactions": "tidelog transactions list",
    "transactions list": "tidelog transactions list --duration-filter 60000",
    "transactions describe": "tidelog transactions describe --transactional-id orders-1",
    "transactions describe-producers": "tidelog transactions describe-producers "
    "--topic hello --partition 0",
    "transactions abort": "tidelog transactions abort --topic hello --partition 0 "
    "--start-offset 42",
    "transactions find-hanging": "tidelog transactions find-hanging --topic hello",
    "transactions forceTerminateTransaction": "tidelog transactions forceTerminateTransaction "
    "--transactionalId orders-1",
    "reassign": "tidelog reassign --execute --reassignment-json-file plan.json",
    "elect": "tidelog elect --election-type preferred --all-topic-partitions",
    "delete-records": "tidelog delete-records --offset-json-file offsets.json",
    "features": "tidelog features describe",
    "features describe": "tidelog features describe",
    "features upgrade": "tidelog features upgrade --feature kraft.version=1 --dry-run",
    "features downgrade": "tidelog features downgrade --feature metadata.version=25 --dry-run",
    "features disable": "tidelog features disable --feature eligible.leader.replicas.version",
    "features version-mapping": "tidelog features version-mapping --release-version 4.0",
    "produce": "echo 'key:value' | tidelog produce --topic hello --key-separator :",
    "consume": "tidelog consume --topic hello --from-beginning --max-messages 10",
    "get-offsets": "tidelog get-offsets --topic hello --time earliest",
    "bench": "tidelog bench --against kafka --quick --out results",
    "perf": "tidelog perf produce --topic hello --num-records 10000 --record-size 100",
    "perf produce": "tidelog perf produce --topic hello --num-records 10000 --record-size 100",
    "perf consume": "tidelog perf consume --topic hello --num-records 10000",
    "pipeline": "tidelog pipeline ingest --topics orders --out lake --once",
    "pipeline ingest": "tidelog pipeline ingest --topics orders --out lake --once",
    "pipeline query": 'tidelog pipeline query --out lake --sql "SELECT count(*) FROM orders"',
    "pipeline replay": "tidelog pipeline replay --out lake --value-format string --dry-run",
    "pipeline maintain": "tidelog pipeline maintain --out lake --retain 90",
    "pipeline transform": "tidelog pipeline transform --topic orders --to totals --once",
    "pipeline health": "tidelog pipeline health",
    "pipeline report": "tidelog pipeline report --out report.html",
    "pipeline audit": "tidelog pipeline audit --ledger ledger.jsonl",
    "pipeline demo": "tidelog pipeline demo --pace 0.5",
    "tables": "tidelog tables --out lake",
    "tables list": "tidelog tables list --out lake --json",
    "tables run": "tidelog tables run --out lake --interval 10",
    "completion": "tidelog completion bash",
    "replicas": "tidelog replicas --topic hello --watch",
    "explain": "tidelog explain hello-0",
    "observe": "tidelog observe --bootstrap-server kafka:9092 --topic orders --out events.jsonl",
    "cluster": "tidelog cluster describe",
    "cluster cluster-id": "tidelog cluster cluster-id",
    "cluster describe": "tidelog cluster describe",
    "quorum": "tidelog quorum describe --status",
    "quorum describe": "tidelog quorum describe --replication --human-readable",
    "log-dirs": "tidelog log-dirs --describe --topic-list hello",
    "dump-log": "tidelog dump-log --print-data-log "
    "tidelog-data/1/data/hello-0/00000000000000000000.log",
    "stray": "tidelog stray --dir tidelog-data/1/data list",
    "whatif": "tidelog whatif --fault leader-crash --acks 1",
    "simulate": "tidelog simulate --story a_leader_dies_and_a_follower_takes_over "
    "--html story.html",
}


def with_example(epilog: str | None, path: str) -> str:
    """The end of a command's help: the epilog of the command, and the example."""
    # click does not rewrap the lines of a paragraph that begins with a backspace.
    example = f"\b\nExample:\n  {EXAMPLES[path]}"
    if epilog is None or epilog.endswith(example):
        return epilog or example
    return f"{epilog}\n\n{example}"
