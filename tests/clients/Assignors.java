import java.io.*;
import java.util.*;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.*;
import org.apache.kafka.coordinator.group.assignor.*;
import org.apache.kafka.coordinator.group.modern.*;

/**
 * Runs Kafka's assignors of consumer groups. Each line of the input is one group:
 * assignor, "homogeneous" or "heterogeneous", topics (id:partitions, separated by commas), then one
 * field per member: id/instance or "-"/subscribed topics separated by commas/assigned partitions
 * (topic:1+2+3, separated by commas). Fields are separated by tabs, and topics are numbers in the list.
 * Each line of the output is the new assignment, in the same form.
 */
public class Assignors {
    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null; ) {
            System.out.println(assign(line.split("\t")));
        }
    }

    static String assign(String[] fields) {
        List<Uuid> topics = new ArrayList<>();
        Map<Uuid, Integer> counts = new HashMap<>();
        for (String topic : fields[2].split(",")) {
            Uuid id = Uuid.fromString(topic.split(":")[0]);
            topics.add(id);
            counts.put(id, Integer.parseInt(topic.split(":")[1]));
        }
        Map<String, MemberSubscriptionAndAssignmentImpl> members = new HashMap<>();
        Map<Uuid, Map<Integer, String>> owners = new HashMap<>();
        for (String field : Arrays.copyOfRange(fields, 3, fields.length)) {
            String[] parts = field.split("/", -1);
            Set<Uuid> subscribed = new LinkedHashSet<>();
            for (String topic : parts[2].split(",")) {
                if (!topic.isEmpty()) subscribed.add(topics.get(Integer.parseInt(topic)));
            }
            Map<Uuid, Set<Integer>> assigned = new HashMap<>();
            for (String entry : parts[3].split(",")) {
                if (entry.isEmpty()) continue;
                Uuid id = topics.get(Integer.parseInt(entry.split(":")[0]));
                List<Integer> partitions = new ArrayList<>();
                for (String partition : entry.split(":")[1].split("[+]")) {
                    partitions.add(Integer.parseInt(partition));
                    owners.computeIfAbsent(id, __ -> new HashMap<>()).put(Integer.parseInt(partition), parts[0]);
                }
                assigned.put(id, new HashSet<>(partitions));
            }
            Optional<String> instance = parts[1].equals("-") ? Optional.empty() : Optional.of(parts[1]);
            members.put(parts[0], new MemberSubscriptionAndAssignmentImpl(
                Optional.empty(), instance, subscribed, new Assignment(assigned)));
        }
        GroupSpec spec = new GroupSpecImpl(
            Collections.unmodifiableMap(members),
            fields[1].equals("homogeneous") ? SubscriptionType.HOMOGENEOUS : SubscriptionType.HETEROGENEOUS,
            owners);
        SubscribedTopicDescriber describer = new SubscribedTopicDescriber() {
            public int numPartitions(Uuid id) { return counts.getOrDefault(id, -1); }
            public Set<String> racksForPartition(Uuid id, int partition) { return Set.of(); }
        };
        PartitionAssignor assignor = fields[0].equals("range") ? new RangeAssignor() : new UniformAssignor();
        Map<String, MemberAssignment> result = assignor.assign(spec, describer).members();
        StringBuilder out = new StringBuilder();
        for (String member : new TreeSet<>(members.keySet())) {
            out.append(out.length() == 0 ? "" : "\t").append(member).append("/");
            Map<Uuid, Set<Integer>> partitions =
                result.containsKey(member) ? result.get(member).partitions() : Map.of();
            List<String> entries = new ArrayList<>();
            for (int i = 0; i < topics.size(); i++) {
                Set<Integer> chosen = partitions.get(topics.get(i));
                if (chosen == null || chosen.isEmpty()) continue;
                List<String> sorted = new ArrayList<>();
                for (Integer partition : new TreeSet<>(chosen)) sorted.add(partition.toString());
                entries.add(i + ":" + String.join("+", sorted));
            }
            out.append(String.join(",", entries));
        }
        return out.toString();
    }
}
