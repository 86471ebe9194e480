import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * Members of one share group. They accept most records and release some. A line "accepted VALUE" is
 * printed after the broker has confirmed the acceptance, and "unknown VALUE" if the outcome of an
 * acceptance is not known. The members leave when standard input ends.
 */
class ShareConsumers {
    public static void main(String[] arguments) throws Exception {
        start(arguments[0]);
        AtomicBoolean isOver = new AtomicBoolean();
        List<Thread> members = new ArrayList<>();
        for (int number = 0; number < Integer.parseInt(arguments[2]); number++) {
            int seed = number;
            Thread member = new Thread(() -> consume(arguments[0], arguments[1], seed, isOver));
            member.start();
            members.add(member);
        }
        System.in.read();
        isOver.set(true);
        for (Thread member : members) {
            member.join();
        }
        System.out.println("done");
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    /** Let the group read from the beginning. */
    private static void start(String servers) throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", servers))) {
            ConfigEntry earliest = new ConfigEntry("share.auto.offset.reset", "earliest");
            AlterConfigOp set = new AlterConfigOp(earliest, AlterConfigOp.OpType.SET);
            ConfigResource group = new ConfigResource(ConfigResource.Type.GROUP, "shared");
            admin.incrementalAlterConfigs(Map.of(group, List.of(set))).all().get();
        }
    }

    private static void consume(String servers, String topic, int seed, AtomicBoolean isOver) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", servers);
        settings.put("group.id", "shared");
        settings.put("share.acknowledgement.mode", "explicit");
        settings.put("max.poll.records", "40");
        StringDeserializer text = new StringDeserializer();
        try (KafkaShareConsumer<String, String> consumer =
                new KafkaShareConsumer<>(settings, text, text)) {
            consumer.subscribe(List.of(topic));
            while (!isOver.get()) {
                List<ConsumerRecord<String, String>> accepted = new ArrayList<>();
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(300))) {
                    boolean isReleased = (record.offset() + seed) % 11 == 0
                        && record.deliveryCount().orElse((short) 1) == 1;
                    consumer.acknowledge(
                        record, isReleased ? AcknowledgeType.RELEASE : AcknowledgeType.ACCEPT);
                    if (!isReleased) {
                        accepted.add(record);
                    }
                }
                if (!accepted.isEmpty()) {
                    report(accepted, consumer.commitSync(Duration.ofSeconds(60)));
                }
            }
        } catch (RuntimeException failure) {
            System.out.println("failed " + failure);
        }
    }

    private static synchronized void report(
            List<ConsumerRecord<String, String>> accepted,
            Map<TopicIdPartition, Optional<KafkaException>> outcomes) {
        for (ConsumerRecord<String, String> record : accepted) {
            boolean isKnown = false;
            for (Map.Entry<TopicIdPartition, Optional<KafkaException>> one : outcomes.entrySet()) {
                if (one.getKey().topic().equals(record.topic())
                        && one.getKey().partition() == record.partition()) {
                    isKnown = one.getValue().isEmpty();
                }
            }
            System.out.println((isKnown ? "accepted " : "unknown ") + record.value());
        }
        System.out.flush();
    }
}
