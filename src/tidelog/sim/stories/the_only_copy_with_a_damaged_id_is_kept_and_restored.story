# The only copy with a damaged id is kept and restored
# F58. The file partition.metadata says to which topic a directory belongs. When it is damaged on the
# only replica, the node cannot know whether the records are those of the topic of today. If it
# deleted what it cannot place, the only copy would be gone. It keeps the directory and answers with
# an error until an operator says that the directory belongs to the topic.

brokers 1
set log.flush.offset.checkpoint.interval.ms 100
topic orders on 1 flush.messages=1
write 3
wait 1 s
kill 1
spoil partition.metadata of orders-0 on 1
start 1
wait until 1 is not fenced
wait 2 s
kill 1
restore orders-0 on 1
start 1
wait until leader of orders-0 is 1
write 2
expect lost 0
