# A new replica of a compacted topic shows committed records
# F80. A marker commits the records of a transaction. While such a record stays in the log, its marker
# must stay too. A replica that copies the log without the marker considers the transaction open, and
# hides all records from its start on.

brokers 2
set log.cleaner.backoff.ms 100
set transaction.partition.verification.enable false
topic states on 1 2 cleanup.policy=compact internal.segment.bytes=1500 min.cleanable.dirty.ratio=0.01 delete.retention.ms=100
put city Oslo in a transaction
put river Akerselva
fill 8
wait 3 s

# Another pass finds the marker past its delete horizon.
fill 8
wait 3 s
read the table from the start
expect the table has city Oslo

# Broker 2 gets a new disk, copies the compacted log and leads.
kill 2
wait until isr of states-0 is 1
wipe 2
start 2
wait until isr of states-0 is 1 2
kill 1
wait until leader of states-0 is 2
wait 1 s
read the table from the start
expect the table has city Oslo
expect the table has river Akerselva
