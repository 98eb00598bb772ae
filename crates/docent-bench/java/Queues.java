import static java.nio.charset.StandardCharsets.UTF_8;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Semaphore;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.queue.DistributedQueue;
import org.apache.curator.framework.recipes.queue.QueueBuilder;
import org.apache.curator.framework.recipes.queue.QueueConsumer;
import org.apache.curator.framework.recipes.queue.QueueSerializer;
import org.apache.curator.framework.recipes.queue.SimpleDistributedQueue;
import org.apache.curator.framework.state.ConnectionState;

/** Queues whose producers and consumers each have their own session. */
final class Queues {
    private static final String ITEM = "an item of a queue, of some forty bytes";
    /** Maximum number of items that were put and not yet taken, besides the backlog. */
    private static final int ROOM = 100;

    private Queues() {}

    /** Uses a lock path, so an item is deleted only after it was consumed. */
    static String queue(Order order) throws Exception {
        Crowd crowd = new Crowd();
        Semaphore room = new Semaphore(ROOM);
        List<DistributedQueue<String>> queues = new ArrayList<>();
        for (CuratorFramework client : order.clients(order.number("consumers"))) {
            queues.add(opened(client, order, consumer(crowd, room)));
        }
        for (CuratorFramework client : order.clients(order.number("producers"))) {
            DistributedQueue<String> queue = opened(client, order, null);
            queues.add(queue);
            crowd.each(() -> {
                room.acquire();
                queue.put(ITEM);
            });
        }
        String answer = crowd.measure(order);
        for (DistributedQueue<String> queue : queues) {
            queue.close();
        }
        return answer;
    }

    private static DistributedQueue<String> opened(
            CuratorFramework client, Order order, QueueConsumer<String> consumer) throws Exception {
        DistributedQueue<String> queue = QueueBuilder.builder(client, consumer, new Texts(), order.path() + "/items")
                .lockPath(order.path() + "/locks")
                .putInBackground(false)
                .buildQueue();
        queue.start();
        return queue;
    }

    private static QueueConsumer<String> consumer(Crowd crowd, Semaphore room) {
        return new QueueConsumer<>() {
            @Override
            public void consumeMessage(String item) {
                crowd.add(1);
                room.release();
            }

            @Override
            public void stateChanged(CuratorFramework client, ConnectionState state) {}
        };
    }

    /** One session puts items and another takes them, with a backlog of constant size. */
    static String simple(Order order) throws Exception {
        SimpleDistributedQueue target = new SimpleDistributedQueue(order.client(), order.path());
        SimpleDistributedQueue source = new SimpleDistributedQueue(order.client(), order.path());
        byte[] item = ITEM.getBytes(UTF_8);
        for (int put = 0; put < order.number("backlog"); put++) {
            target.offer(item);
        }
        Crowd crowd = new Crowd();
        Semaphore room = new Semaphore(ROOM);
        crowd.each(() -> {
            room.acquire();
            target.offer(item);
        });
        crowd.each(() -> {
            source.take();
            crowd.add(1);
            room.release();
        });
        return crowd.measure(order);
    }

    private static final class Texts implements QueueSerializer<String> {
        @Override
        public byte[] serialize(String item) {
            return item.getBytes(UTF_8);
        }

        @Override
        public String deserialize(byte[] item) {
            return new String(item, UTF_8);
        }
    }
}
