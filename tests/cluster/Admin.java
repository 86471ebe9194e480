import java.util.*;
import java.util.concurrent.*;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.common.*;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.config.TopicConfig;

/**
 * Calls a cluster of three brokers with Kafka's own AdminClient, and prints the answers without
 * values that differ from run to run. Arguments: the bootstrap servers.
 */
class Admin {
    static final int AGREED = 20;
    static org.apache.kafka.clients.admin.Admin admin;

    interface Question {
        Object answer() throws Exception;
    }

    /** Ask, and print the answer or Kafka's error. */
    static void say(String what, Question question) {
        String said;
        try {
            said = String.valueOf(question.answer());
        } catch (ExecutionException failed) {
            said = failed.getCause().getClass().getSimpleName() + ": " + failed.getCause().getMessage();
        } catch (Exception failed) {
            said = failed.getClass().getSimpleName() + ": " + failed.getMessage();
        }
        System.out.println(what + " -> " + said);
    }

    static <T> T get(KafkaFuture<T> future) throws Exception {
        return future.get(120, TimeUnit.SECONDS);
    }

    static String partitions(TopicDescription topic) {
        return topic.partitions().stream()
            .map(p -> p.partition() + ": leader " + (p.leader() == null ? -1 : p.leader().id())
                + " replicas " + ids(p.replicas()) + " isr " + new TreeSet<>(ids(p.isr()))
                + " elr " + ids(p.elr()) + " last known " + ids(p.lastKnownElr()))
            .collect(Collectors.joining("; "));
    }

    static List<Integer> ids(Collection<Node> nodes) {
        return nodes == null ? List.of() : nodes.stream().map(Node::id).collect(Collectors.toList());
    }

    static TopicDescription describe(String topic) throws Exception {
        return get(admin.describeTopics(List.of(topic)).allTopicNames()).get(topic);
    }

    /** Wait until 20 answers in a row have this many partitions with all replicas in sync. */
    static String settled(String topic, int partitions) throws Exception {
        for (int agreed = 0; agreed < AGREED; agreed++) {
            if (!isSettled(describe(topic), partitions)) {
                agreed = -1;
                Thread.sleep(20);
            }
        }
        return partitions(describe(topic));
    }

    static boolean isSettled(TopicDescription found, int partitions) {
        return found.partitions().size() == partitions
            && found.partitions().stream().allMatch(p -> p.isr().size() == p.replicas().size());
    }

    static String config(ConfigResource resource, String... names) throws Exception {
        Config config = get(admin.describeConfigs(List.of(resource)).all()).get(resource);
        return Arrays.stream(names)
            .map(name -> name + "=" + config.get(name).value() + " (" + config.get(name).source()
                + (config.get(name).isReadOnly() ? ", read-only" : "") + ")")
            .collect(Collectors.joining(", "));
    }

    /** The names of all topics, once 20 answers in a row list exactly these. */
    static Set<String> listed(String... names) throws Exception {
        for (int agreed = 0; agreed < AGREED; agreed++) {
            if (!get(admin.listTopics().names()).equals(Set.of(names))) {
                agreed = -1;
                Thread.sleep(20);
            }
        }
        return new TreeSet<>(get(admin.listTopics().names()));
    }

    /** Some values of a configuration, once 20 answers in a row show the change. */
    static String changed(String known, ConfigResource resource, String... names) throws Exception {
        for (int agreed = 0; agreed < AGREED; agreed++) {
            if (!config(resource, names).contains(known)) {
                agreed = -1;
                Thread.sleep(20);
            }
        }
        return config(resource, names);
    }

    static AlterConfigOp op(String name, String value, AlterConfigOp.OpType type) {
        return new AlterConfigOp(new ConfigEntry(name, value), type);
    }

    public static void main(String[] arguments) throws Exception {
        Properties properties = new Properties();
        properties.put(AdminClientConfig.BOOTSTRAP_SERVERS_CONFIG, arguments[0]);
        admin = org.apache.kafka.clients.admin.Admin.create(properties);
        topics();
        configs();
        elections();
        reassignments();
        cluster();
        Runtime.getRuntime().halt(0);
    }

    static void topics() {
        Map<Integer, List<Integer>> spread = Map.of(0, List.of(1, 2, 3), 1, List.of(2, 3, 1));
        say("create spread", () -> {
            CreateTopicsResult made = admin.createTopics(
                List.of(new NewTopic("spread", spread).configs(Map.of("retention.ms", "1000000"))));
            get(made.all());
            return get(made.numPartitions("spread")) + " partitions, " + get(made.replicationFactor("spread"))
                + " replicas, retention.ms " + get(made.config("spread")).get("retention.ms").value();
        });
        say("create spread again", () -> get(admin.createTopics(List.of(new NewTopic("spread", spread))).all()));
        say("create, only to see", () -> {
            CreateTopicsResult seen = admin.createTopics(
                List.of(new NewTopic("never", 4, (short) 2)), new CreateTopicsOptions().validateOnly(true));
            get(seen.all());
            return get(seen.numPartitions("never")) + " partitions, " + get(seen.replicationFactor("never"));
        });
        say("create with too many replicas", () ->
            get(admin.createTopics(List.of(new NewTopic("wide", 1, (short) 4))).all()));
        say("create with defaults", () -> {
            CreateTopicsResult made = admin.createTopics(
                List.of(new NewTopic("plain", Optional.empty(), Optional.empty())));
            return get(made.numPartitions("plain")) + " partitions, " + get(made.replicationFactor("plain"));
        });
        say("describe spread", () -> settled("spread", 2));
        say("describe missing", () -> describe("missing"));
        say("list", () -> listed("plain", "spread"));
        say("grow spread to 3", () -> get(admin.createPartitions(
            Map.of("spread", NewPartitions.increaseTo(3, List.of(List.of(3, 1, 2))))).all()));
        say("shrink spread to 1", () -> get(admin.createPartitions(
            Map.of("spread", NewPartitions.increaseTo(1))).all()));
        say("describe spread", () -> settled("spread", 3));
        say("offsets of spread", () -> {
            TopicPartition where = new TopicPartition("spread", 0);
            var found = get(admin.listOffsets(Map.of(where, OffsetSpec.latest())).all()).get(where);
            return found.offset() + " in epoch " + found.leaderEpoch().orElse(-1);
        });
        say("delete records of spread", () -> get(admin.deleteRecords(
            Map.of(new TopicPartition("spread", 0), RecordsToDelete.beforeOffset(0))).all()));
        say("delete plain", () -> get(admin.deleteTopics(List.of("plain")).all()));
        say("delete missing", () -> get(admin.deleteTopics(List.of("missing")).all()));
        say("delete by an id that nobody has", () -> get(admin.deleteTopics(
            TopicCollection.ofTopicIds(List.of(Uuid.fromString("AAAAAAAAAAAAAAAAAAAAAw")))).all()));
        say("list", () -> listed("spread"));
    }

    static void configs() {
        ConfigResource spread = new ConfigResource(ConfigResource.Type.TOPIC, "spread");
        ConfigResource two = new ConfigResource(ConfigResource.Type.BROKER, "2");
        ConfigResource all = new ConfigResource(ConfigResource.Type.BROKER, "");
        String[] some = {"retention.ms", "cleanup.policy", "min.insync.replicas", "segment.bytes"};
        say("configs of spread", () -> changed("retention.ms=1000000", spread, some));
        say("alter", () -> get(admin.incrementalAlterConfigs(Map.of(spread, List.of(
            op("retention.ms", "2000000", AlterConfigOp.OpType.SET),
            op("cleanup.policy", "compact", AlterConfigOp.OpType.APPEND)))).all()));
        say("configs of spread", () -> changed("retention.ms=2000000", spread, some));
        say("take back", () -> get(admin.incrementalAlterConfigs(Map.of(spread, List.of(
            op("retention.ms", null, AlterConfigOp.OpType.DELETE),
            op("cleanup.policy", "compact", AlterConfigOp.OpType.SUBTRACT)))).all()));
        say("configs of spread", () -> changed("retention.ms=604800000", spread, some));
        say("a bad value", () -> get(admin.incrementalAlterConfigs(Map.of(spread, List.of(
            op("segment.bytes", "-7", AlterConfigOp.OpType.SET)))).all()));
        say("an unknown key", () -> get(admin.incrementalAlterConfigs(Map.of(spread, List.of(
            op("no.such.key", "1", AlterConfigOp.OpType.SET)))).all()));
        say("of a missing topic", () -> config(new ConfigResource(ConfigResource.Type.TOPIC, "missing"), some));
        say("of broker 2", () -> config(two, "node.id", "message.max.bytes", "log.retention.ms"));
        say("alter broker 2", () -> get(admin.incrementalAlterConfigs(Map.of(two, List.of(
            op("message.max.bytes", "2000000", AlterConfigOp.OpType.SET)))).all()));
        say("alter all brokers", () -> get(admin.incrementalAlterConfigs(Map.of(all, List.of(
            op("log.retention.ms", "777777", AlterConfigOp.OpType.SET)))).all()));
        say("a read-only key", () -> get(admin.incrementalAlterConfigs(Map.of(two, List.of(
            op("node.id", "9", AlterConfigOp.OpType.SET)))).all()));
        say("of broker 2", () ->
            changed("777777", two, "node.id", "message.max.bytes", "log.retention.ms"));
        say("take back", () -> get(admin.incrementalAlterConfigs(Map.of(
            two, List.of(op("message.max.bytes", null, AlterConfigOp.OpType.DELETE)),
            all, List.of(op("log.retention.ms", null, AlterConfigOp.OpType.DELETE)))).all()));
    }

    static void elections() {
        Set<TopicPartition> first = Set.of(new TopicPartition("spread", 0));
        Set<TopicPartition> missing = Set.of(new TopicPartition("missing", 0));
        say("elect preferred", () -> get(admin.electLeaders(ElectionType.PREFERRED, first).all()));
        say("elect unclean", () -> get(admin.electLeaders(ElectionType.UNCLEAN, first).all()));
        say("elect for missing", () -> get(admin.electLeaders(ElectionType.PREFERRED, missing).all()));
        say("elect for all", () -> get(admin.electLeaders(ElectionType.PREFERRED, null).partitions()).size());
    }

    static void reassignments() {
        TopicPartition first = new TopicPartition("spread", 0);
        say("move", () -> get(admin.alterPartitionReassignments(Map.of(
            first, Optional.of(new NewPartitionReassignment(List.of(2, 3))))).all()));
        say("described", () -> {
            while (!get(admin.listPartitionReassignments().reassignments()).isEmpty()) {
                Thread.sleep(20);
            }
            return settled("spread", 3);
        });
        say("cancel what is done", () -> get(admin.alterPartitionReassignments(
            Map.of(first, Optional.empty())).all()));
        say("move to nobody", () -> get(admin.alterPartitionReassignments(Map.of(
            first, Optional.of(new NewPartitionReassignment(List.of(2, 9))))).all()));
        say("move missing", () -> get(admin.alterPartitionReassignments(Map.of(
            new TopicPartition("missing", 0), Optional.of(new NewPartitionReassignment(List.of(1))))).all()));
        say("under way", () -> get(admin.listPartitionReassignments().reassignments()));
        say("delete spread", () -> get(admin.deleteTopics(List.of("spread")).all()));
    }

    static void cluster() {
        say("cluster", () -> {
            DescribeClusterResult found = admin.describeCluster();
            return new TreeSet<>(ids(get(found.nodes()))) + ", a controller among them "
                + ids(get(found.nodes())).contains(get(found.controller()).id())
                + ", id of " + get(found.clusterId()).length() + " letters, operations "
                + get(found.authorizedOperations());
        });
        say("cluster with operations", () -> new TreeSet<>(get(admin.describeCluster(
            new DescribeClusterOptions().includeAuthorizedOperations(true)).authorizedOperations())));
        say("features", () -> {
            FeatureMetadata found = get(admin.describeFeatures().featureMetadata());
            Set<String> known = new TreeSet<>(found.finalizedFeatures().keySet());
            known.retainAll(Set.of("metadata.version", "eligible.leader.replicas.version"));
            return known + ", an epoch " + found.finalizedFeaturesEpoch().isPresent();
        });
        say("quorum", () -> {
            QuorumInfo found = get(admin.describeMetadataQuorum().quorumInfo());
            return found.voters().stream().map(QuorumInfo.ReplicaState::replicaId).sorted().toList()
                + " vote, observers " + found.observers().size() + ", a leader among them "
                + found.voters().stream().anyMatch(v -> v.replicaId() == found.leaderId())
                + ", a watermark " + (found.highWatermark() > 0)
                + ", nodes " + new TreeSet<>(found.nodes().keySet());
        });
        say("log dirs", () -> {
            var found = get(admin.describeLogDirs(List.of(1, 2, 3)).allDescriptions());
            return new TreeMap<>(found).entrySet().stream()
                .map(e -> e.getKey() + ": " + e.getValue().values().stream()
                    .map(d -> d.error() == null && d.totalBytes().isPresent() && d.usableBytes().isPresent())
                    .toList())
                .collect(Collectors.joining(", "));
        });
        say("forget a broker that is not there", () -> get(admin.unregisterBroker(9).all()));
    }
}
