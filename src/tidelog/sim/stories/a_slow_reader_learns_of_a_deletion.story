# A slow reader learns of a deletion
# F78. A tombstone deletes its key. Compaction removes the older records of the key at once, but the
# tombstone must stay until delete.retention.ms has passed. Otherwise a reader that has already seen
# the value never learns that it was deleted.

brokers 1
set log.cleaner.backoff.ms 100
topic states on 1 cleanup.policy=compact internal.segment.bytes=1500 min.cleanable.dirty.ratio=0.01
put city Oslo
read the table
expect the table has city Oslo

# The reader is slow. Meanwhile the key is deleted, and the log is compacted.
delete city
fill 8
wait 3 s
read the table
expect the table lacks city
