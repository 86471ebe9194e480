# The only copy with a damaged id is kept
# F58. The file partition.metadata names the topic of a directory. If it is damaged on the only
# replica, a node that deletes unknown directories deletes the only copy. Today the directory is kept.
# The metadata shows that no other topic had this name, so the directory belongs to the topic.

brokers 1
set log.flush.offset.checkpoint.interval.ms 100
topic orders on 1 flush.messages=1
write 3
wait 1 s
kill 1
spoil partition.metadata of orders-0 on 1
start 1
wait until leader of orders-0 is 1
wait 1 s
write 2
expect lost 0
