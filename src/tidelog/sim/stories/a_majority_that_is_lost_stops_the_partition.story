# A majority that is lost stops the partition
# Two of three replicas are gone. Under the quorum rule the third one cannot know what they have
# committed, so no replica leads. Under the ISR rule with min.insync.replicas=1 it could go on alone.

brokers 3
topic orders on 1 2 3 tidelog.commit.rule=quorum
write 3
wait 1 s
shut down 1
wait until leader of orders-0 is not none
shut down 2
wait until leader of orders-0 is none
wait 10 s
expect leader of orders-0 is none
start 1
wait until leader of orders-0 is not none
write 1
start 2
wait until isr of orders-0 is 1 2 3
wait 1 s
expect lost 0
expect logs of orders-0 are equal
