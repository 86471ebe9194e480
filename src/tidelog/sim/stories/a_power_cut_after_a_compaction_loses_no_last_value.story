# A power cut after a compaction loses no last value
# F79. Compaction writes a new segment and puts it in the place of others, which are then deleted. The
# new segment must be synced first. Otherwise a power cut leaves an empty segment in their place.

brokers 1
set log.cleaner.backoff.ms 100
topic states on 1 cleanup.policy=compact internal.segment.bytes=1500 min.cleanable.dirty.ratio=0.01
put city Oslo
put city Bergen
fill 8
wait 3 s
power off 1
start 1
wait until leader of states-0 is 1
wait 1 s
read the table from the start
expect the table has city Bergen
