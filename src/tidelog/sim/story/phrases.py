"""The phrases of the story language: patterns whose placeholders become a step's arguments.

In a pattern, words in angle brackets such as `<node>`, `<number>`, `<time>` or `<partition>` are
placeholders. A part in square brackets is optional.
"""

import re
from typing import NamedTuple

_PLACES = {
    "node": r"\d+|the leader|leader of \S+|the controller|none",
    "nodes": r"\d+(?:[ ,]+\d+)*|none",
    "some": r"\d+(?:[ ,]+\d+)*|all|the leader|leader of \S+|the controller",
    "number": r"\d[\d_]*",
    "time": r"\d+ ?(?:ms|s)",
    "partition": r"[\w.]+-\d+",
    "name": r"[\w.-]+",
    "value": r"\S+",
    "acks": r"all|0|1",
    "configs": r"\S+=\S+(?: \S+=\S+)*",
    "condition": r".+?",
}


class Phrase(NamedTuple):
    name: str
    form: str
    meaning: str
    pattern: re.Pattern[str]


def _compiled(form: str) -> re.Pattern[str]:
    """Compile a pattern. Each placeholder becomes a group; `<kind:name>` names the group."""
    pieces = re.split(r"(<[\w:]+>|\[|\])", form)
    built = ""
    for piece in pieces:
        if piece == "[":
            built = built.removesuffix(r"\ ") + r"(?:\ "
        elif piece == "]":
            built += ")?"
        elif piece.startswith("<"):
            kind, _, name = piece[1:-1].partition(":")
            built += f"(?P<{name or kind}>{_PLACES[kind]})"
        else:
            built += re.escape(piece)
    return re.compile(built)


def _phrases(table: str) -> tuple[Phrase, ...]:
    found = []
    for line in table.strip().splitlines():
        name, form, meaning = (part.strip() for part in line.split("|"))
        found.append(Phrase(name, form, meaning, _compiled(form)))
    return tuple(found)


STEPS = _phrases(
    """
brokers | brokers <number> | how many brokers, 1 to N; comes first
controllers | controllers <number> | how many controllers, 101 to 100+N; default 1
seed | seed <number> | determines network delays and elections; default 1
mutant | mutant <name> | every node follows this wrong rule
set | set <name:key> <value> | a Kafka configuration key, for every node
delay | delay <time> | the maximum delay of a message
topic | topic <name> on <nodes> [min-isr <number>] [<configs>] | one partition; the first node leads
topic_rf | topic <name> rf <number:factor> [min-isr <number>] [<configs>] | on brokers 1 to N
write | write <number> [to <partition>] [acks <acks>] [at <node>] | each record waits for its answer
begin | begin write [to <partition>] [acks <acks>] [at <node>] | one record, without waiting
burst | burst <number> every <time> for <time:span> [to <partition>] | batches of N records, acks=1
put | put <name:key> <name:word> | a record with this key and value, acks=all
put_committed | put <name:key> <name:word> in a transaction | the transaction is committed at once
drop | delete <name:key> | a tombstone: a record without a value
fill | fill <number> | large records with another key, so that segments become full
read | read the table | a reader applies the committed records that it has not read
reread | read the table from the start | the same, with a new reader
commit | commit offset <number> | the group `readers`, for the topic that was created last
fetch | fetch the offset | the offset that the group has committed
joins | member <name> joins | the group `team`, with the consumer protocol, for all topics
beats | member <name> sends a heartbeat | the member carries out a new assignment at once
reports | member <name> reports its partitions | the member has given up all others
saves | member <name> commits offset <number> of <partition> | with its member epoch
saves_late | member <name> commits offset <number> of <partition> late | with its earlier epoch
looks | fetch the offset of <partition> | the offset that the group `team` has committed
start_producer | start the producer | a transactional one; fences the one before; 5 s timeout
write_in | write in the transaction | one record to the topic that was created last
write_late | write late in the last transaction | with the epoch of the one that has ended
commit_it | commit the transaction | waits for the answer of the coordinator
abort_it | abort the transaction |
end_again | send the last commit again | as a network does that has delayed it
read_committed | read committed | the records of the topic that was created last
kill | kill <some> | kill -9: the process ends, its page cache stays
power_off | power off <some> | power loss: all unsynced data is lost
wipe | wipe <some> | give a stopped machine a new, empty disk
spoil | spoil <name:file> of <partition> on <node> | fill a file of a stopped machine with garbage
flip | flip a bit of <name:file> of <partition> on <node> | flip a bit in the middle of a file
remove | remove <name:file> of <partition> on <node> | delete a file of a stopped machine
pause | pause <some> | stop the process, as a long garbage collection does
resume | resume <some> | resume the process
start | start <some> | start stopped nodes
shut_down | shut down <some> | a controlled shutdown; waits until it is complete
cut_from | cut <node> from <node:other> | block both directions between the two
cut_to | cut <node> to <node:other> | block one direction; the other one works
isolate | isolate <some> | cut it off from all others
heal | heal | repair all links
move | move <partition> to <nodes> | reassign its replicas
wait_until | wait until <condition> | at most a simulated minute
wait | wait <time> | let simulated time pass
expect | expect <condition> | the story fails unless it holds
"""
)

CONDITIONS = _phrases(
    """
leader | leader of <partition> is <node> | the leader; `none` if there is none
not_leader | leader of <partition> is not <node> |
isr | isr of <partition> is <nodes> | the agreed in-sync set
in_isr | isr of <partition> has <node> |
not_in_isr | isr of <partition> lacks <node> |
replicas | replicas of <partition> are <nodes> |
end | end of <partition> on <node> is <number> | the log end offset
watermark | watermark of <partition> on <node> is <number> | the high watermark that the node knows
lost | lost <number> | acknowledged records that the leaders' logs lack
lost_some | lost at least <number> |
acked | acknowledged <number> | all records that were acknowledged to clients
answered | the write is answered | the write of `begin write`
acked_one | the write is acknowledged |
refused | the write is refused |
offset | the fetched offset is <number> | the result of the last `fetch the offset`
visible | visible records are <number> | the result of the last `read committed`
unstable | <partition> has an open transaction | its leader holds back read_committed consumers
stable | <partition> has no open transaction |
kept | no commit is lost | the fetched offset is not below an acknowledged one
team_kept | no commit of a member is lost | as `no commit is lost`, for the group `team`
one_owner | no partition has two owners | the members of the group `team`
has | the table has <name:key> <name:word> | the last value that the reader knows
lacks | the table lacks <name:key> |
equal | logs of <partition> are equal | every replica holds the same records
differ | logs of <partition> differ |
fetched | <node> has fetched <partition> | its leader has received a fetch in this epoch
fenced | <node> is fenced |
unfenced | <node> is not fenced |
up | <node> is up |
down | <node> is down |
epoch | quorum epoch is <number> | the number of controller elections so far
changes | isr changes of <partition> are <number> | shrinks and expansions since topic creation
some_changes | isr changes of <partition> are at least <number> |
"""
)
