import java.util.List;
import java.util.UUID;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMultiLock;
import org.apache.curator.retry.ExponentialBackoffRetry;

/** Tries what docs/contributors/hypotheses.md says of Curator: Hypotheses HOST:PORT ID [RUNS]. A line for each run says what was seen. */
public final class Hypotheses {
    private static final int ROUNDS = 20;
    private static final long WAIT_SECONDS = 5;

    public static void main(String[] args) throws Exception {
        if (!args[1].equals("S35")) {
            throw new IllegalArgumentException(args[1]);
        }
        int runs = args.length > 2 ? Integer.parseInt(args[2]) : 1;
        int seen = 0;
        try (CuratorFramework a = connect(args[0]); CuratorFramework b = connect(args[0])) {
            for (int i = 0; i < runs; i++) {
                int refused = oppositeOrders(a, b);
                seen += refused > 0 ? 1 : 0;
                System.out.println("S35 " + (refused > 0 ? "" : "no: ") + "in " + refused + " of " + ROUNDS + " rounds a client "
                    + "that requested two locks waited for " + WAIT_SECONDS + " s beside one that requested them in the other "
                    + "order, and held them for 10 ms");
            }
        }
        System.out.println("S35 reproduced in " + seen + " of " + runs + " runs");
    }

    private static CuratorFramework connect(String address) throws InterruptedException {
        CuratorFramework zk = CuratorFrameworkFactory.newClient(address, new ExponentialBackoffRetry(100, 3));
        zk.start();
        zk.blockUntilConnected();
        return zk;
    }

    /** Two clients request two locks in opposite orders at the same time. Returns in how many rounds one got nothing. */
    private static int oppositeOrders(CuratorFramework a, CuratorFramework b) throws Exception {
        String one = "/chaos/" + UUID.randomUUID();
        String other = "/chaos/" + UUID.randomUUID();
        ExecutorService threads = Executors.newFixedThreadPool(2);
        CyclicBarrier start = new CyclicBarrier(2);
        int refused = 0;
        for (int i = 0; i < ROUNDS; i++) {
            Future<Boolean> first = threads.submit(() -> hold(a, List.of(one, other), start));
            Future<Boolean> second = threads.submit(() -> hold(b, List.of(other, one), start));
            boolean both = first.get() & second.get();
            refused += both ? 0 : 1;
        }
        threads.shutdown();
        return refused;
    }

    private static boolean hold(CuratorFramework zk, List<String> paths, CyclicBarrier start) throws Exception {
        InterProcessMultiLock lock = new InterProcessMultiLock(zk, paths);
        start.await();
        if (!lock.acquire(WAIT_SECONDS, TimeUnit.SECONDS)) {
            return false;
        }
        Thread.sleep(10);
        lock.release();
        return true;
    }
}
