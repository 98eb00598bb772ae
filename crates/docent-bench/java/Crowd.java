import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.atomic.LongAdder;

/** Threads that repeat an operation until the crowd is over, and count how often. */
final class Crowd {
    /** Performs the operation once. */
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

    /** Lets the threads run for the lead time, counts the operations within the order's window, and ends the threads. */
    String measure(Order order) throws Exception {
        Thread.sleep(order.number("lead"));
        long before = done.sum();
        Measured measured = Measured.start();
        Thread.sleep(order.number("window"));
        String answer = measured.stop(done.sum() - before);
        isOver = true;
        for (Thread thread : threads) {
            // Most threads end on their own, as soon as the other threads release what they wait for.
            thread.join(200);
            thread.interrupt();
        }
        if (failure.get() != null) {
            throw new IllegalStateException(failure.get());
        }
        return answer;
    }
}
