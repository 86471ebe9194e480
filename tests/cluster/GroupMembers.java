import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.RetriableCommitFailedException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RebalanceInProgressException;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * Members of one group, with the protocols that the arguments name. Each member commits what it has
 * read after every poll. It prints, with the time in milliseconds:
 *
 *   read TIME MEMBER PARTITION FIRST LAST     before the records are committed
 *   committed TIME MEMBER PARTITION NEXT      after the coordinator has confirmed the commit
 *   owns TIME MEMBER PARTITIONS               when the assignment changes
 *
 * The members leave when standard input ends.
 */
class GroupMembers {
    private static String servers;
    private static String topic;
    private static final AtomicBoolean isOver = new AtomicBoolean();

    public static void main(String[] arguments) throws Exception {
        servers = arguments[0];
        topic = arguments[1];
        List<Thread> members = new ArrayList<>();
        for (int number = 2; number < arguments.length; number++) {
            String[] parts = arguments[number].split(":");
            Thread member = new Thread(() -> consume(parts[0], parts[1]));
            member.start();
            members.add(member);
        }
        System.in.read();
        isOver.set(true);
        for (Thread member : members) {
            member.join();
        }
        say("done");
        Runtime.getRuntime().halt(0);
    }

    private static void consume(String name, String protocol) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", servers);
        settings.put("group.id", "movers");
        settings.put("client.id", name);
        settings.put("group.protocol", protocol);
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", "false");
        if (protocol.equals("classic")) {
            settings.put("session.timeout.ms", "10000");
            settings.put("heartbeat.interval.ms", "1000");
            settings.put(
                "partition.assignment.strategy",
                "org.apache.kafka.clients.consumer.CooperativeStickyAssignor");
        }
        StringDeserializer text = new StringDeserializer();
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings, text, text)) {
            consumer.subscribe(List.of(topic), new Listener(name, consumer));
            while (!isOver.get()) {
                handle(name, consumer, consumer.poll(Duration.ofMillis(200)));
            }
        } catch (RuntimeException failure) {
            say("failed " + name + " " + failure);
        }
    }

    private static void handle(
            String name,
            KafkaConsumer<String, String> consumer,
            ConsumerRecords<String, String> records) {
        if (records.isEmpty()) {
            return;
        }
        for (TopicPartition partition : records.partitions()) {
            List<ConsumerRecord<String, String>> batch = records.records(partition);
            say("read " + System.currentTimeMillis() + " " + name + " " + partition.partition()
                + " " + batch.get(0).offset() + " " + batch.get(batch.size() - 1).offset());
        }
        try {
            consumer.commitSync(Duration.ofSeconds(20));
        } catch (CommitFailedException | RebalanceInProgressException
                | RetriableCommitFailedException | TimeoutException lost) {
            say("uncommitted " + System.currentTimeMillis() + " " + name + " "
                + lost.getClass().getSimpleName());
            return;
        }
        long now = System.currentTimeMillis();
        for (TopicPartition partition : records.partitions()) {
            List<ConsumerRecord<String, String>> batch = records.records(partition);
            say("committed " + now + " " + name + " " + partition.partition()
                + " " + (batch.get(batch.size() - 1).offset() + 1));
        }
    }

    private static synchronized void say(String line) {
        System.out.println(line);
        System.out.flush();
    }

    private record Listener(String name, KafkaConsumer<String, String> consumer)
            implements ConsumerRebalanceListener {
        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> added) {
            StringBuilder owned = new StringBuilder();
            for (TopicPartition one : consumer.assignment()) {
                owned.append(" ").append(one.partition());
            }
            say("owns " + System.currentTimeMillis() + " " + name + owned);
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> gone) {}
    }
}
