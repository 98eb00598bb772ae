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
 * <p>Once it is connected it says {@code ready}. Then each line that it reads is {@code NUMBER THING VERB ARGUMENTS}, separated by
 * single spaces, and is answered when it is done: {@code NUMBER ok VALUES} or {@code NUMBER error WHAT}. A thing is made by the verb
 * {@code make KIND ARGUMENTS}. The process ends when its input does.
 */
public final class Contention {
    private static final int THREADS = 6;

    private final String connectString;
    private final CuratorFramework client;
    private final Map<String, ExecutorService> threads = new HashMap<>();
    private final Map<String, Thing> things = new ConcurrentHashMap<>();

    /** What a thing can be told. */
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
        // There may be threads that wait for ever, and no server to take leave of.
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
            default -> throw new IllegalArgumentException("no thing is called " + kind);
        };
    }

    /** What all threads do at once, so many times in all: the number of times that each did it is added. */
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

    /** The number of acquisitions, and the most that held it at once. */
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

    /** The same of one that lets two in. */
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

    /** Two of three turns read. The number of acquisitions, and the most that were inside while one wrote. */
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

    /** Candidates with sessions of their own lead one after the other: the number of terms, and the most leaders at once. */
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

    /** A node that is made again when somebody deletes it: so many times. */
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
     * Another session makes so many changes below a path, and the cache shows all that is left of them: the number of nodes. Waits
     * until it does.
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

    /** How many are somewhere at once, and how many were at most. */
    private static final class Crowd {
        private int here;
        private int most;

        void enter() throws InterruptedException {
            enter(0);
        }

        /** Comes in, and finds others here. */
        synchronized void enter(int others) throws InterruptedException {
            here++;
            most = Math.max(most, here + others);
            // Lets others in, if they can.
            wait(1);
        }

        synchronized void leave() {
            here--;
        }

        synchronized int most() {
            return most;
        }
    }

    /** Where Curator tells nobody, one has to look again and again. */
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
