# A voter back from a partition does not depose the controller
# F36, KIP-996. Controller 103 is cut off for a while. If it started a new epoch at each election
# timeout, its first message after the partition would depose a healthy leader. Today it sends a
# pre-vote first, and voters that have contact with the leader reject it.

brokers 3
controllers 3
topic orders on 1 2 3 min-isr 2
expect quorum epoch is 1
isolate 103
wait 20 s
heal
wait 5 s
write 1
expect quorum epoch is 1
