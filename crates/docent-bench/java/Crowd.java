import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.atomic.LongAdder;

/** Threads that do the same again and again until they are told to stop, and count how often. */
final class Crowd {
    /** Does something once. */
    interface Turn {
        void take() throws Exception;
    }

    private final LongAdder done = new LongAdder();
    private final List<Thread> threads = new ArrayList<>();
    private final AtomicReference<Throwable> failure = new AtomicReference<>();
    private volatile boolean isOver;

    void add(long count) {
        done.add(count);
    }

    boolean isOver() {
        return isOver;
    }

    /** Adds a thread. */
    void each(Turn turn) {
        Thread thread = new Thread(() -> repeat(turn));
        thread.setDaemon(true);
        threads.add(thread);
        thread.start();
    }

    private void repeat(Turn turn) {
        try {
            while (!isOver) {
                turn.take();
            }
        } catch (Throwable error) {
            if (!isOver) {
                failure.compareAndSet(null, error);
            }
        }
    }

    /** Counts what is done within the window of the order, once the threads have run for a while. Ends them. */
    String measure(Order order) throws Exception {
        Thread.sleep(order.number("lead"));
        long before = done.sum();
        Measured measured = Measured.start();
        Thread.sleep(order.number("window"));
        String answer = measured.stop(done.sum() - before);
        isOver = true;
        for (Thread thread : threads) {
            // Most end by themselves, as others let them.
            thread.join(200);
            thread.interrupt();
        }
        if (failure.get() != null) {
            throw new IllegalStateException(failure.get());
        }
        return answer;
    }
}
