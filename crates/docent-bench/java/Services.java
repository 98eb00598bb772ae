import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Predicate;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.x.discovery.ServiceCache;
import org.apache.curator.x.discovery.ServiceDiscovery;
import org.apache.curator.x.discovery.ServiceDiscoveryBuilder;
import org.apache.curator.x.discovery.ServiceInstance;
import org.apache.curator.x.discovery.details.ServiceCacheListener;

/** Views of a service whose instances already exist, and the changes that they show. */
final class Services {
    private static final String SERVICE = "service";

    private Services() {}

    /** Measures the time from the call until all instances are shown, each time in a new session. */
    static String view(Order order) throws Exception {
        List<Long> times = new ArrayList<>();
        Measured measured = Measured.start();
        while (times.size() < order.number("samples")) {
            CuratorFramework client = order.client();
            ServiceDiscovery<Object> discovery = discovery(client, order);
            long called = System.nanoTime();
            ServiceCache<Object> cache = discovery.serviceCacheBuilder().name(SERVICE).build();
            cache.start();
            times.add(System.nanoTime() - called);
            int shown = cache.getInstances().size();
            if (shown != order.number("instances")) {
                throw new IllegalStateException(shown + " instances are shown");
            }
            cache.close();
            discovery.close();
            client.close();
        }
        return measured.stop(times.size()) + Measured.times("", times);
    }

    /** Changes an instance's payload. Measures the time from the call until a view in another session shows the change. */
    static String change(Order order) throws Exception {
        ServiceDiscovery<Object> discovery = discovery(order.client(), order);
        ServiceInstance<Object> instance = instance("0", null);
        String id = instance.getId();
        discovery.registerService(instance);
        View view = new View(order);
        List<Long> times = new ArrayList<>();
        Measured measured = Measured.start();
        for (int sample = 1; sample <= order.number("samples"); sample++) {
            String payload = Integer.toString(sample);
            Wait wait = view.until(instances -> payloadOf(instances, id).equals(payload));
            long called = System.nanoTime();
            discovery.updateService(instance(payload, id));
            times.add(wait.seen() - called);
        }
        String answer = measured.stop(times.size());
        view.close();
        discovery.close();
        return answer + Measured.times("", times);
    }

    /** Registers and deregisters an instance. Measures the times until a view in another session shows each change. */
    static String join(Order order) throws Exception {
        ServiceDiscovery<Object> discovery = discovery(order.client(), order);
        View view = new View(order);
        List<Long> joins = new ArrayList<>();
        List<Long> leaves = new ArrayList<>();
        Measured measured = Measured.start();
        while (joins.size() < order.number("samples")) {
            ServiceInstance<Object> instance = instance("0", null);
            String id = instance.getId();
            Wait joined = view.until(instances -> !payloadOf(instances, id).isEmpty());
            long called = System.nanoTime();
            discovery.registerService(instance);
            joins.add(joined.seen() - called);

            Wait left = view.until(instances -> payloadOf(instances, id).isEmpty());
            called = System.nanoTime();
            discovery.unregisterService(instance);
            leaves.add(left.seen() - called);
        }
        String answer = measured.stop(joins.size());
        view.close();
        discovery.close();
        return answer + Measured.times("", joins) + Measured.times("leave_", leaves);
    }

    private static ServiceDiscovery<Object> discovery(CuratorFramework client, Order order) throws Exception {
        ServiceDiscovery<Object> discovery =
                ServiceDiscoveryBuilder.builder(Object.class).client(client).basePath(order.path()).build();
        discovery.start();
        return discovery;
    }

    private static ServiceInstance<Object> instance(String payload, String id) throws Exception {
        var builder = ServiceInstance.builder().name(SERVICE).address("10.0.0.7").port(8080).payload((Object) payload);
        return id == null ? builder.build() : builder.id(id).build();
    }

    /** Returns the payload of an instance, or an empty text if the instance is not shown. */
    private static String payloadOf(List<ServiceInstance<Object>> instances, String id) {
        for (ServiceInstance<Object> instance : instances) {
            if (instance.getId().equals(id)) {
                return String.valueOf(instance.getPayload());
            }
        }
        return "";
    }

    /** Waits until a view reaches a state. */
    private static final class Wait {
        private final Predicate<List<ServiceInstance<Object>>> wanted;
        private final CountDownLatch seen = new CountDownLatch(1);
        private volatile long at;

        private Wait(Predicate<List<ServiceInstance<Object>>> wanted) {
            this.wanted = wanted;
        }

        long seen() throws InterruptedException {
            if (!seen.await(30, TimeUnit.SECONDS)) {
                throw new IllegalStateException("a change is not seen");
            }
            return at;
        }
    }

    /** A view in its own session. */
    private static final class View implements ServiceCacheListener {
        private final ServiceDiscovery<Object> discovery;
        private final ServiceCache<Object> cache;
        private final AtomicReference<Wait> waiting = new AtomicReference<>();

        View(Order order) throws Exception {
            discovery = discovery(order.client(), order);
            cache = discovery.serviceCacheBuilder().name(SERVICE).build();
            cache.addListener(this);
            cache.start();
            Thread.sleep(order.number("settle"));
        }

        Wait until(Predicate<List<ServiceInstance<Object>>> wanted) {
            Wait wait = new Wait(wanted);
            waiting.set(wait);
            return wait;
        }

        @Override
        public void cacheChanged() {
            long now = System.nanoTime();
            Wait wait = waiting.get();
            if (wait != null && wait.seen.getCount() > 0 && wait.wanted.test(cache.getInstances())) {
                wait.at = now;
                wait.seen.countDown();
            }
        }

        @Override
        public void stateChanged(CuratorFramework client, ConnectionState state) {}

        void close() throws Exception {
            cache.close();
            discovery.close();
        }
    }
}
