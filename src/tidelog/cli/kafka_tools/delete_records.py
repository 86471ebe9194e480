"""`tidelog delete-records`: deletes old records, as kafka-delete-records.sh does."""

import click

from tidelog.cli import options
from tidelog.cli.json_file import read_json
from tidelog.client.administration.partition_admin import delete_records
from tidelog.client.client import Client
from tidelog.client.kafka_exceptions import exception_text
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import Offset, TopicPartition
from tidelog.model.user_error import UserError

LARGEST_OFFSET = 2**63 - 1


@click.command("delete-records")
@click.option(
    "--offset-json-file",
    required=True,
    metavar="FILE",
    help='The offsets: {"partitions": [{"topic": "t", "partition": 0, "offset": 5}], "version": 1}',
)
@options.bootstrap_server
@options.command_config("--command-config")
def command(offset_json_file: str, bootstrap_server: str) -> None:
    """Delete the records of partitions before given offsets. Offset -1 is the high watermark."""
    offsets = read_offsets(offset_json_file)
    with Client(bootstrap_server, tell=options.tell) as client:
        click.echo("Executing records delete operation")
        outcome = delete_records(client, offsets)
        click.echo("Records delete operation completed:")
        for where, (error, low_watermark) in sorted(outcome.items()):
            what = (
                f"low_watermark: {low_watermark}"
                if error is ErrorCode.none
                else f"error: {exception_text(error)}"
            )
            click.echo(f"partition: {where}\t{what}")


def read_offsets(path: str) -> dict[TopicPartition, Offset]:
    plan = read_json(path)
    plan.check_version()
    if "partitions" not in plan:
        raise UserError("Missing partitions field")
    offsets: dict[TopicPartition, Offset] = {}
    for one in plan.objects("partitions"):
        where, offset = one.partition(), one.number("offset", LARGEST_OFFSET)
        if where in offsets:
            raise UserError(f"Offset json file contains duplicate topic partitions: {where}")
        offsets[where] = offset
    return offsets
