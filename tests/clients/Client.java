import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.LinkedBlockingQueue;
import org.apache.zookeeper.AddWatchMode;
import org.apache.zookeeper.AsyncCallback;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.Op;
import org.apache.zookeeper.OpResult;
import org.apache.zookeeper.WatchedEvent;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.ZooDefs.Ids;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.data.ACL;
import org.apache.zookeeper.data.Id;
import org.apache.zookeeper.data.Stat;

/**
 * Sessions of ZooKeeper's Java client that carry out orders: {@code java Client}.
 *
 * <p>The process prints {@code ready}. Each line of its input is an order, {@code NUMBER NAME VERB ARGUMENTS},
 * separated by single spaces. When the order is done, the process answers {@code NUMBER ok VALUES},
 * {@code NUMBER no}, or {@code NUMBER error WHAT}. For a ZooKeeper error, WHAT is its name in lower case. The verb
 * {@code make session CONNECT-STRING TIMEOUT-MS} opens a session. Each session has its own thread. The process
 * exits when its input ends.
 */
public final class Client {
    private static final String LETTERS = "rwcda";

    private final Map<String, ExecutorService> threads = new HashMap<>();
    private final Map<String, Session> sessions = new ConcurrentHashMap<>();

    public static void main(String[] arguments) throws Exception {
        System.out.println("ready");
        new Client().listen();
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
        List<String> arguments = words.subList(3, words.size());
        try {
            if (words.get(2).equals("make")) {
                sessions.put(words.get(1), new Session(arguments.get(1), Integer.parseInt(arguments.get(2))));
                return "ok";
            }
            Object result = sessions.get(words.get(1)).told(words.get(2), arguments);
            if (result instanceof Boolean done) {
                return done ? "ok" : "no";
            }
            Collection<?> values = result instanceof Collection<?> several ? several : List.of(result);
            return values.stream().map(value -> " " + value).reduce("ok", String::concat);
        } catch (KeeperException error) {
            return "error " + named(error.code());
        } catch (Throwable error) {
            return ("error " + error).replace('\n', ' ');
        }
    }

    /** Returns the name in lower case, such as {@code connectionloss}. Other clients use the same names. */
    private static String named(KeeperException.Code code) {
        return code.name().toLowerCase();
    }

    /** One session, with its events and states. */
    private static final class Session {
        private final ZooKeeper client;
        private final String root;
        private final BlockingQueue<String> events = new LinkedBlockingQueue<>();
        private final BlockingQueue<String> states = new LinkedBlockingQueue<>();
        private final Map<String, Watcher> watchers = new HashMap<>();

        Session(String connectString, int timeout) throws Exception {
            client = new ZooKeeper(connectString, timeout, this::changed);
            root = connectString.substring(connectString.indexOf('/'));
            until("connected");
        }

        private void changed(WatchedEvent event) {
            states.add(
                    switch (event.getState()) {
                        case SyncConnected -> "connected";
                        case Disconnected -> "suspended";
                        case Expired -> "expired";
                        case AuthFailed -> "authfailed";
                        default -> event.getState().toString();
                    });
        }

        /** Waits until the session was in this state at any time since the last such wait. */
        private boolean until(String state) throws InterruptedException {
            while (!states.take().equals(state)) {}
            return true;
        }

        Object told(String verb, List<String> words) throws Exception {
            String first = words.isEmpty() ? null : words.get(0);
            return switch (verb) {
                case "id" -> client.getSessionId();
                case "create" -> client.create(words.get(1), bytes(words.get(2)), Ids.OPEN_ACL_UNSAFE, mode(first));
                case "create-mine" -> client.create(first, bytes(words.get(1)), Ids.CREATOR_ALL_ACL, CreateMode.PERSISTENT);
                case "get" -> get(first);
                case "length" -> client.getData(first, false, null).length;
                case "exists" -> client.exists(first, false) != null;
                case "set" -> client.setData(first, bytes(words.get(1)), Integer.parseInt(words.get(2))).getVersion();
                case "delete" -> {
                    client.delete(first, Integer.parseInt(words.get(1)));
                    yield true;
                }
                case "children" -> client.getChildren(first, false).stream().sorted().toList();
                case "count-all" -> client.getAllChildrenNumber(first);
                case "ephemerals" -> client.getEphemerals(first).stream().sorted().toList();
                case "fill" -> fill(first, Integer.parseInt(words.get(1)));
                case "watch" -> watch(first, words.get(1));
                case "unwatch" -> unwatch(first, words.get(1));
                case "event" -> events.take();
                case "multi" -> multi(words);
                case "auth" -> {
                    client.addAuthInfo(first, bytes(words.get(1)));
                    yield true;
                }
                case "whoami" -> client.whoAmI().stream().map(one -> one.getAuthScheme() + ":" + one.getUser()).sorted().toList();
                case "acl" -> client.getACL(first, new Stat()).stream().map(Session::inWord).toList();
                case "set-acl" -> setAcl(words);
                case "config" -> new String(client.getConfig(false, new Stat()), UTF_8).length() > 0;
                case "sync" -> sync();
                case "until" -> until(first);
                case "close" -> {
                    client.close();
                    yield true;
                }
                default -> throw new IllegalArgumentException("unknown verb: " + verb);
            };
        }

        private static CreateMode mode(String name) {
            return CreateMode.valueOf(name.equals("sequential") ? "PERSISTENT_SEQUENTIAL" : name.toUpperCase().replace('-', '_'));
        }

        private List<Object> get(String path) throws Exception {
            Stat stat = new Stat();
            return List.of(new String(client.getData(path, false, stat), UTF_8), stat.getVersion());
        }

        /** Creates this number of children, with all requests in flight at the same time. */
        private boolean fill(String path, int count) throws Exception {
            CountDownLatch made = new CountDownLatch(count);
            for (int number = 0; number < count; number++) {
                AsyncCallback.StringCallback done = (code, asked, context, name) -> made.countDown();
                String child = String.format("%s/child-%05d", path, number);
                client.create(child, new byte[0], Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT, done, null);
            }
            made.await();
            return true;
        }

        private boolean watch(String kind, String path) throws Exception {
            // Each watch has its own watcher, because a watch is removed by its watcher's identity.
            Watcher watcher = new Watcher() {
                @Override
                public void process(WatchedEvent event) {
                    // Other events concern only the client: its link, and watches that it removed.
                    if (event.getType().toString().startsWith("Node")) {
                        events.add(word(event.getType()) + ":" + event.getPath());
                    }
                }
            };
            switch (kind) {
                case "data" -> client.getData(path, watcher, new Stat());
                case "exists" -> client.exists(path, watcher);
                case "children" -> client.getChildren(path, watcher);
                case "persistent" -> client.addWatch(path, watcher, AddWatchMode.PERSISTENT);
                case "recursive" -> client.addWatch(path, watcher, AddWatchMode.PERSISTENT_RECURSIVE);
                default -> throw new IllegalArgumentException("unknown kind of watch: " + kind);
            }
            watchers.put(kind + " " + path, watcher);
            return true;
        }

        private static String word(Watcher.Event.EventType type) {
            return switch (type) {
                case NodeCreated -> "created";
                case NodeDeleted -> "deleted";
                case NodeDataChanged -> "changed";
                default -> "child";
            };
        }

        private boolean unwatch(String kind, String path) throws Exception {
            Watcher.WatcherType type =
                    switch (kind) {
                        case "data", "exists" -> Watcher.WatcherType.Data;
                        case "children" -> Watcher.WatcherType.Children;
                        default -> Watcher.WatcherType.Any;
                    };
            client.removeWatches(path, watchers.getOrDefault(kind + " " + path, event -> {}), type, false);
            return true;
        }

        private List<String> multi(List<String> orders) throws Exception {
            List<Op> ops = new ArrayList<>();
            for (String order : orders) {
                String[] words = order.split(":", -1);
                ops.add(
                        switch (words[0]) {
                            case "create" -> Op.create(words[1], bytes(words[2]), Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
                            case "set" -> Op.setData(words[1], bytes(words[2]), Integer.parseInt(words[3]));
                            case "delete" -> Op.delete(words[1], Integer.parseInt(words[2]));
                            default -> Op.check(words[1], Integer.parseInt(words[2]));
                        });
            }
            List<OpResult> results;
            try {
                results = client.multi(ops);
            } catch (KeeperException error) {
                results = error.getResults();
            }
            return results.stream().map(this::result).toList();
        }

        private String result(OpResult result) {
            if (result instanceof OpResult.ErrorResult error) {
                return error.getErr() == 0 ? "rolledback" : named(KeeperException.Code.get(error.getErr()));
            }
            if (result instanceof OpResult.CreateResult created) {
                // The client does not remove its root from these paths.
                return "created=" + created.getPath().replaceFirst("^" + root, "");
            }
            if (result instanceof OpResult.SetDataResult set) {
                return "set=" + set.getStat().getVersion();
            }
            return result instanceof OpResult.DeleteResult ? "delete" : "check";
        }

        private boolean setAcl(List<String> words) throws Exception {
            int bits = words.get(1).chars().map(letter -> 1 << LETTERS.indexOf(letter)).sum();
            client.setACL(words.get(0), Arrays.asList(new ACL(bits, new Id(words.get(2), words.get(3)))), -1);
            return true;
        }

        private static String inWord(ACL entry) {
            StringBuilder word = new StringBuilder();
            for (int bit = 0; bit < LETTERS.length(); bit++) {
                if ((entry.getPerms() & 1 << bit) != 0) {
                    word.append(LETTERS.charAt(bit));
                }
            }
            return word + ":" + entry.getId().getScheme() + ":" + entry.getId().getId();
        }

        private boolean sync() throws Exception {
            CountDownLatch done = new CountDownLatch(1);
            client.sync("/", (code, path, context) -> done.countDown(), null);
            done.await();
            return true;
        }
    }

    private static byte[] bytes(String text) {
        return text.getBytes(UTF_8);
    }
}
