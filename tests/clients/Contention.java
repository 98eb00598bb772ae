import static java.nio.charset.StandardCharsets.UTF_8;
import static java.util.concurrent.TimeUnit.SECONDS;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.cache.ChildData;
import org.apache.curator.framework.recipes.cache.CuratorCache;
import org.apache.curator.framework.recipes.cache.CuratorCacheListener;
import org.apache.curator.framework.recipes.cache.PathChildrenCache;
import org.apache.curator.framework.recipes.cache.TreeCache;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.framework.recipes.nodes.PersistentNode;
import org.apache.curator.retry.RetryOneTime;
import org.apache.zookeeper.CreateMode;

/**
 * Curator under contention: {@code java Contention CONNECT-STRING}.
 *
 * <p>The process prints {@code ready} when it is connected. Each line of its input is an order,
 * {@code NUMBER THING VERB ARGUMENTS}, separated by single spaces. When the order is done, the process answers
 * {@code NUMBER ok VALUES} or {@code NUMBER error WHAT}. The verb {@code make KIND ARGUMENTS} creates a thing. The
 * process exits when its input ends.
 */
public final class Contention {
    private static final int THREADS = 6;

    private final String connectString;
    private final CuratorFramework client;
    private final Map<String, ExecutorService> threads = new HashMap<>();
    private final Map<String, Thing> things = new ConcurrentHashMap<>();

    /** A thing that carries out orders. */
    interface Thing {
        List<?> told(String verb, int number) throws Exception;
    }

    private Contention(String connectString) throws Exception {
        this.connectString = connectString;
        client = connected();
    }

    public static void main(String[] arguments) throws Exception {
        Contention contention = new Contention(arguments[0]);
        System.out.println("ready");
        contention.listen();
        // Other threads may wait forever, and the server may be unreachable, so nothing is closed.
        Runtime.getRuntime().halt(0);
    }

    private CuratorFramework connected() throws Exception {
        CuratorFramework client = CuratorFrameworkFactory.builder()
                .connectString(connectString)
                .sessionTimeoutMs(8_000)
                .retryPolicy(new RetryOneTime(100))
                .ensembleTracker(false)
                .build();
        client.start();
        if (!client.blockUntilConnected(30, SECONDS)) {
            throw new IOException("not connected");
        }
        return client;
    }

    private void listen() throws IOException {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, UTF_8));
        for (String line; (line = input.readLine()) != null; ) {
            String[] words = line.split(" ", -1);
            threads.computeIfAbsent(words[1], name -> Executors.newSingleThreadExecutor())
                    .execute(() -> System.out.println(words[0] + " " + answer(words)));
        }
    }

    private String answer(String[] words) {
        try {
            if (words[2].equals("make")) {
                things.put(words[1], make(words[3], words[4]));
                return "ok";
            }
            List<?> values = things.get(words[1]).told(words[2], Integer.parseInt(words[3]));
            return values.stream().map(value -> " " + value).reduce("ok", String::concat);
        } catch (Throwable error) {
            return ("error " + error).replace('\n', ' ');
        }
    }

    private Thing make(String kind, String path) throws Exception {
        return switch (kind) {
            case "mutex" -> (verb, times) -> mutex(path, times);
            case "semaphore" -> (verb, times) -> semaphore(path, times);
            case "rw-lock" -> (verb, times) -> readWriteLock(path, times);
            case "latch" -> (verb, candidates) -> latch(path, candidates);
            case "node" -> (verb, length) -> node(path, length);
            case "cache" -> curatorCache(path);
            case "path-cache" -> pathCache(path);
            case "tree-cache" -> treeCache(path);
            default -> throw new IllegalArgumentException("unknown kind of thing: " + kind);
        };
    }

    /** Takes this number of turns, spread over all threads. Returns the number of turns that acquired. */
    private static int contend(int times, Callable<Boolean> turn) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(THREADS);
        List<Future<Integer>> done = new ArrayList<>();
        for (int thread = 0; thread < THREADS; thread++) {
            done.add(pool.submit(() -> {
                int acquired = 0;
                for (int turns = 0; turns < times / THREADS; turns++) {
                    acquired += turn.call() ? 1 : 0;
                }
                return acquired;
            }));
        }
        int sum = 0;
        for (Future<Integer> one : done) {
            sum += one.get();
        }
        pool.shutdown();
        return sum;
    }

    /** Returns the number of acquisitions, and the maximum number of simultaneous holders. */
    private List<Integer> mutex(String path, int times) throws Exception {
        InterProcessMutex mutex = new InterProcessMutex(client, path);
        Crowd inside = new Crowd();
        int acquired = contend(times, () -> {
            if (!mutex.acquire(20, SECONDS)) {
                return false;
            }
            inside.enter();
            inside.leave();
            mutex.release();
            return true;
        });
        return List.of(acquired, inside.most());
    }

    /** Does the same for a semaphore with two permits. */
    private List<Integer> semaphore(String path, int times) throws Exception {
        InterProcessSemaphoreV2 semaphore = new InterProcessSemaphoreV2(client, path, 2);
        Crowd inside = new Crowd();
        int acquired = contend(times, () -> {
            Lease lease = semaphore.acquire(20, SECONDS);
            if (lease == null) {
                return false;
            }
            inside.enter();
            inside.leave();
            semaphore.returnLease(lease);
            return true;
        });
        return List.of(acquired, inside.most());
    }

    /** Reads in two of three turns. Returns the number of acquisitions, and the most holders while one wrote. */
    private List<Integer> readWriteLock(String path, int times) throws Exception {
        InterProcessReadWriteLock lock = new InterProcessReadWriteLock(client, path);
        AtomicInteger turns = new AtomicInteger();
        AtomicInteger readers = new AtomicInteger();
        Crowd writers = new Crowd();
        int acquired = contend(times, () -> {
            boolean writes = turns.incrementAndGet() % 3 == 0;
            InterProcessMutex half = writes ? lock.writeLock() : lock.readLock();
            if (!half.acquire(20, SECONDS)) {
                return false;
            }
            if (writes) {
                writers.enter(readers.get());
                writers.leave();
            } else {
                readers.incrementAndGet();
                Thread.sleep(1);
                readers.decrementAndGet();
            }
            half.release();
            return true;
        });
        return List.of(acquired, writers.most());
    }

    /** Candidates with separate sessions lead in turn. Returns the number of terms, and the most simultaneous leaders. */
    private List<Integer> latch(String path, int candidates) throws Exception {
        List<LeaderLatch> waiting = new ArrayList<>();
        for (int candidate = 0; candidate < candidates; candidate++) {
            LeaderLatch latch = new LeaderLatch(connected(), path, "candidate-" + candidate);
            latch.start();
            waiting.add(latch);
        }
        int terms = 0;
        int most = 0;
        while (!waiting.isEmpty()) {
            until(() -> waiting.stream().anyMatch(LeaderLatch::hasLeadership));
            List<LeaderLatch> leaders = waiting.stream().filter(LeaderLatch::hasLeadership).toList();
            most = Math.max(most, leaders.size());
            leaders.get(0).close();
            waiting.remove(leaders.get(0));
            terms++;
        }
        return List.of(terms, most);
    }

    /** Deletes a persistent node this number of times, which its owner re-creates each time. Returns the number. */
    private List<Integer> node(String path, int times) throws Exception {
        PersistentNode node = new PersistentNode(client, CreateMode.EPHEMERAL, false, path, bytes("x"));
        node.start();
        CuratorFramework other = connected();
        int made = 0;
        for (; made < times; made++) {
            until(() -> other.checkExists().forPath(path) != null);
            other.delete().forPath(path);
        }
        until(() -> other.checkExists().forPath(path) != null);
        node.close();
        return List.of(made);
    }

    private Thing curatorCache(String path) {
        CuratorCache cache = CuratorCache.build(client, path);
        AtomicInteger events = new AtomicInteger();
        cache.listenable()
                .addListener(CuratorCacheListener.builder().forAll((type, old, data) -> events.incrementAndGet()).build());
        cache.start();
        return (verb, changes) -> follow(path, changes, events, () -> {
            Map<String, String> nodes = new TreeMap<>();
            cache.stream().forEach(node -> nodes.put(node.getPath(), text(node)));
            nodes.remove(path);
            return nodes;
        });
    }

    private Thing pathCache(String path) throws Exception {
        client.createContainers(path);
        PathChildrenCache cache = new PathChildrenCache(client, path, true);
        AtomicInteger events = new AtomicInteger();
        cache.getListenable().addListener((curator, event) -> events.incrementAndGet());
        cache.start(PathChildrenCache.StartMode.BUILD_INITIAL_CACHE);
        return (verb, changes) -> follow(path, changes, events, () -> {
            Map<String, String> nodes = new TreeMap<>();
            cache.getCurrentData().forEach(node -> nodes.put(node.getPath(), text(node)));
            return nodes;
        });
    }

    private Thing treeCache(String path) throws Exception {
        TreeCache cache = new TreeCache(client, path);
        AtomicInteger events = new AtomicInteger();
        cache.getListenable().addListener((curator, event) -> events.incrementAndGet());
        cache.start();
        return (verb, changes) -> follow(path, changes, events, () -> {
            Map<String, String> nodes = new TreeMap<>();
            Map<String, ChildData> children = cache.getCurrentChildren(path);
            if (children != null) {
                children.values().forEach(node -> nodes.put(node.getPath(), text(node)));
            }
            return nodes;
        });
    }

    /**
     * Makes this number of changes below a path from another session, and waits until the cache shows the resulting
     * nodes. Returns the number of nodes and the number of events.
     */
    private List<Integer> follow(String path, int changes, AtomicInteger events, Supplier<Map<String, String>> shown)
            throws Exception {
        CuratorFramework other = connected();
        other.createContainers(path);
        Map<String, String> nodes = new TreeMap<>();
        for (int change = 0; change < changes; change++) {
            String node = path + "/node-" + change % 50;
            String data = Integer.toString(change);
            if (!nodes.containsKey(node)) {
                other.create().forPath(node, bytes(data));
                nodes.put(node, data);
            } else if (change % 7 == 0) {
                other.delete().forPath(node);
                nodes.remove(node);
            } else {
                other.setData().forPath(node, bytes(data));
                nodes.put(node, data);
            }
        }
        until(() -> shown.get().equals(nodes));
        other.close();
        return List.of(nodes.size(), events.get());
    }

    /** Number of threads inside, and its maximum so far. */
    private static final class Crowd {
        private int here;
        private int most;

        void enter() throws InterruptedException {
            enter(0);
        }

        /** Enters while {@code others} are inside. */
        synchronized void enter(int others) throws InterruptedException {
            here++;
            most = Math.max(most, here + others);
            // Gives other threads time to enter, if the lock permits.
            wait(1);
        }

        synchronized void leave() {
            here--;
        }

        synchronized int most() {
            return most;
        }
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

    private static String text(ChildData node) {
        return node.getData() == null ? "" : new String(node.getData(), UTF_8);
    }
}
