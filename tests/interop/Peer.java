import static java.nio.charset.StandardCharsets.UTF_8;
import static java.util.concurrent.TimeUnit.MILLISECONDS;
import static java.util.concurrent.TimeUnit.SECONDS;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.SynchronousQueue;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.atomic.AtomicValue;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicInteger;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicLong;
import org.apache.curator.framework.recipes.barriers.DistributedBarrier;
import org.apache.curator.framework.recipes.barriers.DistributedDoubleBarrier;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderSelector;
import org.apache.curator.framework.recipes.leader.LeaderSelectorListenerAdapter;
import org.apache.curator.framework.recipes.leader.Participant;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.framework.recipes.locks.Revoker;
import org.apache.curator.framework.recipes.nodes.GroupMember;
import org.apache.curator.framework.recipes.queue.DistributedDelayQueue;
import org.apache.curator.framework.recipes.queue.DistributedPriorityQueue;
import org.apache.curator.framework.recipes.queue.DistributedQueue;
import org.apache.curator.framework.recipes.queue.QueueBuilder;
import org.apache.curator.framework.recipes.queue.QueueConsumer;
import org.apache.curator.framework.recipes.queue.QueueSerializer;
import org.apache.curator.framework.recipes.queue.SimpleDistributedQueue;
import org.apache.curator.framework.recipes.shared.SharedCount;
import org.apache.curator.framework.recipes.shared.SharedValue;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.RetryForever;
import org.apache.curator.retry.RetryOneTime;
import org.apache.curator.x.discovery.ServiceDiscovery;
import org.apache.curator.x.discovery.ServiceDiscoveryBuilder;
import org.apache.curator.x.discovery.ServiceInstance;
import org.apache.curator.x.discovery.ServiceInstanceBuilder;
import org.apache.curator.x.discovery.ServiceType;
import org.apache.curator.x.discovery.UriSpec;

/**
 * A Curator client that carries out orders:
 * {@code java Peer.java CONNECT-STRING SESSION-TIMEOUT-MS DEFAULT-DATA}.
 *
 * <p>The process prints {@code ready} when it is connected. Each line of its input is an order,
 * {@code NUMBER THING VERB ARGUMENTS}, separated by single spaces. When the order is done, and not before, the
 * process answers {@code NUMBER ok VALUES}, {@code NUMBER no}, or {@code NUMBER error WHAT}. The verb
 * {@code make KIND ARGUMENTS} creates a thing. Each thing has its own thread, so waiting blocks no other thing,
 * and a lock is released by the thread that holds it. The process exits when its input ends.
 */
public final class Peer {
    private final CuratorFramework client;
    private final Map<String, ExecutorService> threads = new HashMap<>();
    private final Map<String, Thing> things = new ConcurrentHashMap<>();

    private Peer(CuratorFramework client) {
        this.client = client;
    }

    public static void main(String[] arguments) throws Exception {
        CuratorFramework client = CuratorFrameworkFactory.builder()
                .connectString(arguments[0])
                .sessionTimeoutMs(Integer.parseInt(arguments[1]))
                .defaultData(bytes(arguments[2]))
                .retryPolicy(new RetryOneTime(100))
                .ensembleTracker(false)
                .build();
        client.start();
        if (client.blockUntilConnected(30, SECONDS)) {
            System.out.println("ready");
            new Peer(client).listen();
        }
        // Other threads may wait forever, and the server may be unreachable, so nothing is closed.
        Runtime.getRuntime().halt(0);
    }

    private void listen() throws IOException {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, UTF_8));
        for (String line; (line = input.readLine()) != null; ) {
            List<String> words = List.of(line.split(" ", -1));
            threads.computeIfAbsent(words.get(1), name -> Executors.newSingleThreadExecutor())
                    .execute(() -> System.out.println(words.get(0) + " " + answer(words)));
        }
    }

    private String answer(List<String> words) {
        String name = words.get(1);
        String verb = words.get(2);
        List<String> arguments = words.subList(3, words.size());
        try {
            if (verb.equals("make")) {
                things.put(name, make(arguments));
                return "ok";
            }
            Object result = things.get(name).told(verb, arguments);
            if (result instanceof Boolean done) {
                return done ? "ok" : "no";
            }
            Collection<?> values = result instanceof Collection<?> several ? several : List.of(result);
            return values.stream().map(value -> " " + value).reduce("ok", String::concat);
        } catch (Throwable error) {
            return ("error " + error).replace('\n', ' ');
        }
    }

    /** A recipe in use, and its verbs. */
    private static final class Thing {
        interface Action {
            void act(List<String> arguments) throws Exception;
        }

        interface Question {
            /** Returns a boolean without values, a text or number as one value, or a collection of several values. */
            Object ask(List<String> arguments) throws Exception;
        }

        private final Map<String, Question> verbs = new HashMap<>();

        Thing does(String verb, Action action) {
            return tells(verb, arguments -> {
                action.act(arguments);
                return true;
            });
        }

        Thing tells(String verb, Question question) {
            verbs.put(verb, question);
            return this;
        }

        Object told(String verb, List<String> arguments) throws Exception {
            if (!verbs.containsKey(verb)) {
                throw new IllegalArgumentException("it does not know how to " + verb);
            }
            return verbs.get(verb).ask(arguments);
        }
    }

    private Thing make(List<String> words) throws Exception {
        String path = words.get(1);
        return switch (words.get(0)) {
            case "mutex" -> mutex(path);
            case "rw-lock" -> readWriteLock(path);
            case "semaphore" ->
                    semaphore(new InterProcessSemaphoreV2(client, path, Integer.parseInt(words.get(2))));
            case "shared-semaphore" ->
                    semaphore(new InterProcessSemaphoreV2(client, path, shared(words.get(2), words.get(3))));
            case "latch" -> latch(path, words.get(2));
            case "selector" -> selector(path, words.get(2));
            case "barrier" -> barrier(path);
            case "double-barrier" -> doubleBarrier(path, Integer.parseInt(words.get(2)));
            case "producer" -> producer(path);
            case "delays" -> delays(path);
            case "priorities" -> priorities(path);
            case "consumer" -> consumer(path, words.get(2));
            case "simple-queue" -> simpleQueue(path);
            case "discovery" -> discovery(path);
            case "typed-discovery" -> typedDiscovery(path, Class.forName(words.get(2)));
            case "member" -> member(path, words.get(2), words.get(3));
            case "count" -> count(shared(path, words.get(2)));
            case "value" -> value(path, words.get(2));
            case "long" -> atomicLong(path);
            case "int" -> atomicInteger(path);
            default -> throw new IllegalArgumentException("no thing is called " + words.get(0));
        };
    }

    private Thing mutex(String path) {
        InterProcessMutex mutex = new InterProcessMutex(client, path);
        CountDownLatch revoked = new CountDownLatch(1);
        return new Thing()
                .does("acquire", arguments -> mutex.acquire())
                .tells("try", arguments -> mutex.acquire(0, MILLISECONDS))
                .does("release", arguments -> mutex.release())
                .tells("participants", arguments -> mutex.getParticipantNodes())
                .does("allow-revoking", arguments -> mutex.makeRevocable(lock -> revoked.countDown()))
                .does("be-revoked", arguments -> revoked.await())
                .does("revoke", arguments -> Revoker.attemptRevoke(client, arguments.get(0)));
    }

    private Thing readWriteLock(String path) {
        InterProcessReadWriteLock lock = new InterProcessReadWriteLock(client, path);
        return new Thing()
                .does("read", arguments -> lock.readLock().acquire())
                .tells("try-read", arguments -> lock.readLock().acquire(0, MILLISECONDS))
                .does("stop-reading", arguments -> lock.readLock().release())
                .does("write", arguments -> lock.writeLock().acquire())
                .tells("try-write", arguments -> lock.writeLock().acquire(0, MILLISECONDS))
                .does("stop-writing", arguments -> lock.writeLock().release());
    }

    private static Thing semaphore(InterProcessSemaphoreV2 semaphore) {
        List<Lease> leases = new ArrayList<>();
        return new Thing()
                .does("acquire", arguments -> leases.addAll(semaphore.acquire(Integer.parseInt(arguments.get(0)))))
                .tells("try", arguments -> semaphore.acquire(0, MILLISECONDS) != null)
                .does("release", arguments -> {
                    semaphore.returnAll(leases);
                    leases.clear();
                })
                .tells("participants", arguments -> semaphore.getParticipantNodes());
    }

    private Thing latch(String path, String id) {
        LeaderLatch latch = new LeaderLatch(client, path, id);
        return new Thing()
                .does("stand", arguments -> latch.start())
                .does("lead", arguments -> latch.await())
                .does("resign", arguments -> latch.close())
                .tells("leads", arguments -> latch.hasLeadership())
                .tells("leader", arguments -> latch.getLeader().getId())
                .tells("candidates", arguments -> named(latch.getParticipants()));
    }

    private Thing selector(String path, String id) {
        CountDownLatch leads = new CountDownLatch(1);
        CountDownLatch resigned = new CountDownLatch(1);
        LeaderSelector selector = new LeaderSelector(client, path, new LeaderSelectorListenerAdapter() {
            @Override
            public void takeLeadership(CuratorFramework client) throws Exception {
                leads.countDown();
                resigned.await();
            }
        });
        if (!id.isEmpty()) {
            selector.setId(id);
        }
        return new Thing()
                .does("stand", arguments -> selector.start())
                .does("lead", arguments -> leads.await())
                .does("resign", arguments -> resigned.countDown())
                .tells("leads", arguments -> selector.hasLeadership())
                .tells("leader", arguments -> selector.getLeader().getId())
                .tells("candidates", arguments -> named(selector.getParticipants()));
    }

    private static List<String> named(Collection<Participant> candidates) {
        return candidates.stream().map(one -> one.getId() + (one.isLeader() ? "-leads" : "-waits")).toList();
    }

    private Thing barrier(String path) {
        DistributedBarrier barrier = new DistributedBarrier(client, path);
        return new Thing()
                .does("set", arguments -> barrier.setBarrier())
                .does("remove", arguments -> barrier.removeBarrier())
                .does("wait", arguments -> barrier.waitOnBarrier());
    }

    private Thing doubleBarrier(String path, int members) {
        DistributedDoubleBarrier barrier = new DistributedDoubleBarrier(client, path, members);
        return new Thing()
                .does("enter", arguments -> barrier.enter())
                .does("leave", arguments -> barrier.leave());
    }

    private Thing producer(String path) throws Exception {
        DistributedQueue<String> queue =
                QueueBuilder.builder(client, null, new Texts(), path).putInBackground(false).buildQueue();
        queue.start();
        return new Thing()
                .does("put", arguments -> queue.put(arguments.get(0)))
                .does("put-multi", arguments -> {
                    Iterator<String> items = arguments.iterator();
                    queue.putMulti(() -> items.hasNext() ? items.next() : null);
                });
    }

    private Thing delays(String path) throws Exception {
        DistributedDelayQueue<String> queue =
                QueueBuilder.builder(client, null, new Texts(), path).putInBackground(false).buildDelayQueue();
        queue.start();
        return new Thing().does("put", arguments -> queue.put(arguments.get(0), Long.parseLong(arguments.get(1))));
    }

    private Thing priorities(String path) throws Exception {
        DistributedPriorityQueue<String> queue =
                QueueBuilder.builder(client, null, new Texts(), path).putInBackground(false).buildPriorityQueue(0);
        queue.start();
        return new Thing().does("put", arguments -> queue.put(arguments.get(0), Integer.parseInt(arguments.get(1))));
    }

    /** A consumer whose item waits for the verb {@code take}, and counts as consumed after the verb {@code finish}. */
    private Thing consumer(String path, String lockPath) throws Exception {
        SynchronousQueue<String> items = new SynchronousQueue<>();
        SynchronousQueue<String> ends = new SynchronousQueue<>();
        QueueConsumer<String> consumer = new QueueConsumer<>() {
            @Override
            public void consumeMessage(String item) throws Exception {
                items.put(item);
                ends.take();
            }

            @Override
            public void stateChanged(CuratorFramework client, ConnectionState state) {}
        };
        QueueBuilder.builder(client, consumer, new Texts(), path).lockPath(lockPath).buildQueue().start();
        return new Thing().tells("take", arguments -> items.take()).does("finish", arguments -> ends.put(""));
    }

    private static final class Texts implements QueueSerializer<String> {
        @Override
        public byte[] serialize(String item) {
            return bytes(item);
        }

        @Override
        public String deserialize(byte[] item) {
            return text(item);
        }
    }

    private Thing simpleQueue(String path) {
        SimpleDistributedQueue queue = new SimpleDistributedQueue(client, path);
        return new Thing()
                .does("offer", arguments -> queue.offer(bytes(arguments.get(0))))
                .tells("take", arguments -> text(queue.take()))
                .tells("peek", arguments -> textOrNo(queue.peek()))
                .tells("poll", arguments -> textOrNo(queue.poll()));
    }

    private Thing discovery(String path) throws Exception {
        ServiceDiscovery<Object> discovery =
                ServiceDiscoveryBuilder.builder(Object.class).client(client).basePath(path).build();
        discovery.start();
        return new Thing()
                .does("register", fields -> discovery.registerService(instance(fields)))
                .does("update", fields -> discovery.updateService(instance(fields)))
                .does("unregister", fields -> discovery.unregisterService(instance(fields)))
                .tells("names", arguments -> discovery.queryForNames())
                .tells("find", arguments -> {
                    ServiceInstance<Object> found = discovery.queryForInstance(arguments.get(0), arguments.get(1));
                    return found == null ? false : fields(found);
                });
    }

    /** Parses name, id, address, port, TLS port, registration time, type, payload (a text, or a map's entry) and URI. */
    private static ServiceInstance<Object> instance(List<String> fields) throws Exception {
        String[] payload = fields.get(7).split("=");
        ServiceInstanceBuilder<Object> builder = ServiceInstance.builder()
                .name(fields.get(0))
                .id(fields.get(1))
                .address(fields.get(2))
                .port(Integer.parseInt(fields.get(3)))
                .registrationTimeUTC(Long.parseLong(fields.get(5)))
                .serviceType(ServiceType.valueOf(fields.get(6)))
                .payload(payload.length == 1 ? payload[0] : new HashMap<>(Map.of(payload[0], payload[1])));
        if (!fields.get(4).equals("null")) {
            builder.sslPort(Integer.parseInt(fields.get(4)));
        }
        if (!fields.get(8).equals("null")) {
            builder.uriSpec(new UriSpec(fields.get(8)));
        }
        return builder.build();
    }

    /** Returns the same fields of a found instance, with a resolved URI, and whether the instance is enabled. */
    private static List<Object> fields(ServiceInstance<Object> instance) {
        UriSpec uri = instance.getUriSpec();
        Object payload = instance.getPayload();
        if (payload instanceof Map<?, ?> map) {
            payload = map.toString().replaceAll("[{}]", "");
        }
        return Arrays.asList(
                instance.getName(),
                instance.getId(),
                instance.getAddress(),
                instance.getPort(),
                instance.getSslPort(),
                instance.getRegistrationTimeUTC(),
                instance.getServiceType(),
                payload,
                uri == null ? null : uri.build(instance),
                instance.isEnabled());
    }

    /** Discovery with a payload class of a framework, which has the fields id, name and metadata. */
    private <T> Thing typedDiscovery(String path, Class<T> type) throws Exception {
        ServiceDiscovery<T> discovery = ServiceDiscoveryBuilder.builder(type).client(client).basePath(path).build();
        discovery.start();
        return new Thing()
                .does("register", fields -> discovery.registerService(typed(type, fields)))
                .does("update", fields -> discovery.updateService(typed(type, fields)))
                .does("unregister", fields -> discovery.unregisterService(typed(type, fields)))
                .tells("find-all", service -> {
                    List<String> found = new ArrayList<>();
                    for (ServiceInstance<T> instance : discovery.queryForInstances(service.get(0))) {
                        found.add(instance.getId() + "=" + new TreeMap<>(metadata(instance)));
                    }
                    return found.stream().map(one -> one.replace(" ", "")).sorted().toList();
                })
                // The filter of Spring Cloud's load balancer: an instance without a status is up.
                .tells("find-up", service -> {
                    List<String> up = new ArrayList<>();
                    for (ServiceInstance<T> instance : discovery.queryForInstances(service.get(0))) {
                        String status = metadata(instance).get("instance_status");
                        if (status == null || status.isBlank() || status.equalsIgnoreCase("UP")) {
                            up.add(instance.getId() + "=" + instance.buildUriSpec());
                        }
                    }
                    return up.stream().sorted().toList();
                });
    }

    /** Parses name, id, address, port, status and zone. */
    private static <T> ServiceInstance<T> typed(Class<T> type, List<String> fields) throws Exception {
        Map<String, String> metadata = new HashMap<>(Map.of("instance_status", fields.get(4), "zone", fields.get(5)));
        return ServiceInstance.<T>builder()
                .name(fields.get(0))
                .id(fields.get(1))
                .address(fields.get(2))
                .port(Integer.parseInt(fields.get(3)))
                .uriSpec(new UriSpec("{scheme}://{address}:{port}"))
                .payload(type.getConstructor(String.class, String.class, Map.class)
                        .newInstance("application-1", fields.get(0), metadata))
                .build();
    }

    @SuppressWarnings("unchecked")
    private static <T> Map<String, String> metadata(ServiceInstance<T> instance) throws Exception {
        T payload = instance.getPayload();
        return payload == null ? Map.of() : (Map<String, String>) payload.getClass().getMethod("getMetadata").invoke(payload);
    }

    private Thing member(String path, String id, String data) {
        GroupMember member = new GroupMember(client, path, id, bytes(data));
        member.start();
        return new Thing()
                .does("until-members", wanted -> until(() -> members(member).equals(wanted)))
                .does("leave", arguments -> member.close());
    }

    private static List<String> members(GroupMember member) {
        return new TreeMap<>(member.getCurrentMembers())
                .entrySet().stream().map(one -> one.getKey() + "=" + text(one.getValue())).toList();
    }

    private SharedCount shared(String path, String seed) throws Exception {
        SharedCount count = new SharedCount(client, path, Integer.parseInt(seed));
        count.start();
        return count;
    }

    private static Thing count(SharedCount count) {
        return new Thing()
                .tells("get", arguments -> count.getCount())
                .does("set", arguments -> count.setCount(Integer.parseInt(arguments.get(0))))
                .does("until", wanted -> until(() -> count.getCount() == Integer.parseInt(wanted.get(0))));
    }

    private Thing value(String path, String seed) throws Exception {
        SharedValue value = new SharedValue(client, path, bytes(seed));
        value.start();
        return new Thing()
                .tells("get", arguments -> text(value.getValue()))
                .does("set", arguments -> value.setValue(bytes(arguments.get(0))))
                .does("until", wanted -> until(() -> text(value.getValue()).equals(wanted.get(0))));
    }

    private Thing atomicLong(String path) {
        DistributedAtomicLong number = new DistributedAtomicLong(client, path, new RetryForever(1));
        return new Thing()
                .tells("get", arguments -> after(number.get()))
                .tells("add", arguments -> after(number.add(Long.parseLong(arguments.get(0)))))
                .tells("compare-and-set", arguments ->
                        after(number.compareAndSet(Long.parseLong(arguments.get(0)), Long.parseLong(arguments.get(1)))));
    }

    private Thing atomicInteger(String path) {
        DistributedAtomicInteger number = new DistributedAtomicInteger(client, path, new RetryForever(1));
        return new Thing()
                .tells("get", arguments -> after(number.get()))
                .tells("add", arguments -> after(number.add(Integer.parseInt(arguments.get(0)))));
    }

    private static Object after(AtomicValue<?> result) {
        return result.succeeded() ? result.postValue() : false;
    }

    /** Polls a condition that Curator does not report. */
    private static void until(Callable<Boolean> wanted) throws Exception {
        while (!wanted.call()) {
            Thread.sleep(5);
        }
    }

    private static byte[] bytes(String text) {
        return text.getBytes(UTF_8);
    }

    private static String text(byte[] bytes) {
        return new String(bytes, UTF_8);
    }

    private static Object textOrNo(byte[] bytes) {
        return bytes == null ? false : text(bytes);
    }
}
