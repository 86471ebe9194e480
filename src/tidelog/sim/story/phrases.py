"""The sentences of the story language: patterns with places, each read into a step's arguments.

In a pattern `<node>`, `<nodes>`, `<number>`, `<time>`, `<partition>`, `<condition>` and others are
places; `[...]` may be left out.
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
    """Each place becomes a named group; a place named `kind:name` has its own name."""
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
controllers | controllers <number> | how many controllers, 101 to 100+N; one if not said
seed | seed <number> | draws network delays and elections; 1 if not said
mutant | mutant <name> | every node follows this wrong rule
set | set <name:key> <value> | one of Kafka's keys, for every node
delay | delay <time> | how long a message takes at most
topic | topic <name> on <nodes> [min-isr <number>] [<configs>] | one partition; the first leads
topic_rf | topic <name> rf <number:factor> [min-isr <number>] [<configs>] | so, on brokers 1 to N
write | write <number> [to <partition>] [acks <acks>] [at <node>] | one by one, each until answered
begin | begin write [to <partition>] [acks <acks>] [at <node>] | one record, not waited for
burst | burst <number> every <time> for <time:span> [to <partition>] | batches of so many, acks=1
kill | kill <some> | kill -9: the process ends, what it wrote stays
power_off | power off <some> | pull the plug: what was not synced is gone
wipe | wipe <some> | a new, empty disk in a machine that is down
spoil | spoil <name:file> of <partition> on <node> | garbage in a file of a machine that is down
remove | remove <name:file> of <partition> on <node> | a file of a machine that is down is gone
pause | pause <some> | stop the process, as a long garbage collection does
resume | resume <some> | let it go on
start | start <some> | start what is down
shut_down | shut down <some> | a controlled shutdown, waited for
cut_from | cut <node> from <node:other> | nothing passes between the two
cut_to | cut <node> to <node:other> | nothing gets from the one to the other; the way back is open
isolate | isolate <some> | cut it off from everyone
heal | heal | mend every way
move | move <partition> to <nodes> | reassign its replicas
wait_until | wait until <condition> | at most a simulated minute
wait | wait <time> | let simulated time pass
expect | expect <condition> | the story fails unless it holds
"""
)

CONDITIONS = _phrases(
    """
leader | leader of <partition> is <node> | who leads; none when nobody does
not_leader | leader of <partition> is not <node> |
isr | isr of <partition> is <nodes> | the agreed in-sync set
in_isr | isr of <partition> has <node> |
not_in_isr | isr of <partition> lacks <node> |
replicas | replicas of <partition> are <nodes> |
end | end of <partition> on <node> is <number> | the log end offset
watermark | watermark of <partition> on <node> is <number> | the high watermark as it knows it
lost | lost <number> | acknowledged records that the leaders' logs lack
lost_some | lost at least <number> |
acked | acknowledged <number> | records in all that clients were promised
answered | the write is answered | of `begin write`
acked_one | the write is acknowledged |
refused | the write is refused |
equal | logs of <partition> are equal | every replica holds the same records
differ | logs of <partition> differ |
fetched | <node> has fetched <partition> | its leader has heard from it in this epoch
fenced | <node> is fenced |
unfenced | <node> is not fenced |
up | <node> is up |
down | <node> is down |
epoch | quorum epoch is <number> | elections of controllers so far
changes | isr changes of <partition> are <number> | shrinks and expansions since the topic was made
some_changes | isr changes of <partition> are at least <number> |
"""
)
