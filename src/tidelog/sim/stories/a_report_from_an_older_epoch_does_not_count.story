# A report from an older epoch does not count
# F82. Broker 3 reports its log end in one election and then takes part in commits of the next leader.
# The controller no longer receives its heartbeats and still has the old report. When the leader dies,
# the old report and the report of 1 would be a majority without the new records. A report counts
# only for the epoch that it names, so the partition waits until 3 reports again.

brokers 3
topic orders on 1 2 3 tidelog.commit.rule=quorum
write 1
wait 2 s
pause 1
wait until leader of orders-0 is 2
wait until 3 has fetched orders-0
cut 3 to 101
cut 1 from 2
resume 1
wait 1 s
write 2
kill 2
wait until leader of orders-0 is none
wait 5 s
expect leader of orders-0 is none
heal
wait until leader of orders-0 is not none
start 2
wait until isr of orders-0 is 1 2 3
wait 1 s
expect lost 0
expect logs of orders-0 are equal
