import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.redisson.Redisson;
import org.redisson.RedissonMultiLock;
import org.redisson.api.RCountDownLatch;
import org.redisson.api.RFencedLock;
import org.redisson.api.RFuture;
import org.redisson.api.RLock;
import org.redisson.api.RReadWriteLock;
import org.redisson.api.RSemaphore;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/**
 * Tries the hypotheses of docs/hypotheses.md that need no fault of the network: Hypotheses HOST:PORT ID [RUNS]. The server
 * needs enable-debug-command. A line for each run says what was seen.
 */
public final class Hypotheses {
    private interface Attempt {
        /** Returns what was seen; "no: " and what was seen if it refutes the hypothesis. */
        String run(String key) throws Exception;
    }

    private final String address;
    private final RedissonClient a;
    private final RedissonClient b;
    private final ExecutorService other = Executors.newCachedThreadPool(run -> {
        Thread thread = new Thread(run);
        thread.setDaemon(true);
        return thread;
    });

    private Hypotheses(String address) {
        this.address = address;
        a = client();
        b = client();
    }

    private RedissonClient client() {
        Config config = new Config();
        config.useSingleServer().setAddress("redis://" + address).setConnectionMinimumIdleSize(2).setConnectionPoolSize(8);
        return Redisson.create(config);
    }

    public static void main(String[] args) throws Exception {
        Thread.setDefaultUncaughtExceptionHandler((thread, e) -> { // threads of the library would keep the process
            e.printStackTrace();
            Runtime.getRuntime().halt(1);
        });
        Hypotheses h = new Hypotheses(args[0]);
        Attempt attempt = switch (args[1]) {
            case "S01" -> h::leaseOfFencedLock;
            case "S02" -> h::leaseOfMultiLock;
            case "S07" -> h::unlockOfExpiredFairLock;
            case "S08" -> h::downgradeWakesNobody;
            case "S09" -> h::reentryAddsLeases;
            case "S10" -> h::readReleaseShortensWrite;
            case "S13" -> h::semaphoreMissesMessage;
            case "S13b" -> h::latchMissesMessage;
            case "S14" -> h::asyncWaiters;
            case "S15" -> h::permitsAddedTwice;
            case "S19" -> h::tokenOfReentry;
            default -> throw new IllegalArgumentException(args[1]);
        };
        int seen = 0;
        int runs = args.length > 2 ? Integer.parseInt(args[2]) : 1;
        for (int i = 0; i < runs; i++) {
            String what = attempt.run("hypothesis-" + UUID.randomUUID());
            seen += what.startsWith("no: ") ? 0 : 1;
            System.out.println(args[1] + " " + what);
        }
        System.out.println(args[1] + " reproduced in " + seen + " of " + runs + " runs");
        Runtime.getRuntime().halt(0);
    }

    /** Executes a command past the clients, and waits for its reply. */
    private void command(String line) throws IOException {
        int colon = address.lastIndexOf(':');
        try (Socket direct = new Socket(address.substring(0, colon), Integer.parseInt(address.substring(colon + 1)))) {
            direct.getOutputStream().write((line + "\r\n").getBytes(StandardCharsets.US_ASCII));
            new BufferedReader(new InputStreamReader(direct.getInputStream(), StandardCharsets.US_ASCII)).readLine();
        }
    }

    private long ttl(String key) {
        return a.getKeys().remainTimeToLive(key);
    }

    private static String longer(long ttl, long asked) {
        return (ttl > asked ? "" : "no: ") + "a lease of " + asked + " ms was asked for; the key expires in " + ttl + " ms";
    }

    private String leaseOfFencedLock(String key) {
        RFencedLock lock = a.getFencedLock(key);
        lock.lockAndGetToken(2, TimeUnit.SECONDS);
        String seen = longer(ttl(key), 2000);
        lock.unlock();
        return seen;
    }

    /** Another client holds the lock for longer than the first round of the multi-lock waits. */
    private String leaseOfMultiLock(String key) throws Exception {
        RLock held = b.getLock(key);
        held.lock(9, TimeUnit.SECONDS);
        RLock multi = new RedissonMultiLock(a.getLock(key), a.getLock(key + "-2"));
        multi.lockInterruptibly(4, TimeUnit.SECONDS);
        String seen = longer(ttl(key), 4000);
        multi.unlock();
        return seen;
    }

    private String unlockOfExpiredFairLock(String key) throws Exception {
        RLock lock = a.getFairLock(key);
        lock.lock(100, TimeUnit.MILLISECONDS);
        Thread.sleep(300);
        try {
            lock.unlock();
        } catch (IllegalMonitorStateException e) {
            return "no: unlock() of an expired lock throws " + e.getMessage();
        }
        return "unlock() of an expired lock returns normally";
    }

    /** A reader waits for a writer that downgrades: its wait ends with the release of the write lock, or much later. */
    private String downgradeWakesNobody(String key) throws Exception {
        RReadWriteLock lock = a.getReadWriteLock(key);
        lock.writeLock().lock();
        lock.readLock().lock();
        Future<Long> granted = other.submit(() -> {
            RLock reader = b.getReadWriteLock(key).readLock();
            if (!reader.tryLock(15, TimeUnit.SECONDS)) {
                return -1L;
            }
            long at = System.nanoTime();
            reader.unlock();
            return at;
        });
        Thread.sleep(1000);
        lock.writeLock().unlock();
        long released = System.nanoTime();
        long at = granted.get();
        lock.readLock().unlock();
        if (at < 0) {
            return "a reader was not granted the lock within 14 s after the writer had released it and read on";
        }
        long waited = (at - released) / 1_000_000;
        return (waited > 2000 ? "" : "no: ") + "a reader was granted the lock " + waited + " ms after the downgrade";
    }

    private String reentryAddsLeases(String key) {
        RLock lock = a.getReadWriteLock(key).writeLock();
        for (int i = 0; i < 6; i++) {
            lock.lock(10, TimeUnit.SECONDS);
        }
        String seen = longer(ttl(key), 10_000);
        lock.forceUnlock();
        return seen;
    }

    private String readReleaseShortensWrite(String key) {
        RReadWriteLock lock = a.getReadWriteLock(key);
        lock.writeLock().lock(60, TimeUnit.SECONDS);
        lock.readLock().lock(5, TimeUnit.SECONDS);
        lock.readLock().lock(5, TimeUnit.SECONDS);
        lock.readLock().unlock();
        long ttl = ttl(key);
        lock.writeLock().forceUnlock();
        return (ttl < 50_000 ? "" : "no: ") + "a write lock was asked for 60 s; after a read lock inside it was released, it "
            + "expires in " + ttl + " ms";
    }

    private interface Wait {
        void run() throws InterruptedException;
    }

    /** Ends the connection of a waiter's subscription, and does what it waits for before it is subscribed again. */
    private String missed(Wait wait, Runnable release) throws Exception {
        CompletableFuture<Void> waiting = CompletableFuture.runAsync(() -> {
            try {
                wait.run();
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
        }, other);
        Thread.sleep(1000);
        command("CLIENT KILL TYPE pubsub");
        release.run();
        try {
            waiting.get(15, TimeUnit.SECONDS);
        } catch (TimeoutException e) {
            return "a waiter still waits 15 s after the release, whose message was lost with a connection";
        } catch (ExecutionException e) {
            return "no: the waiter got an error: " + e.getCause();
        }
        return "no: the waiter was served";
    }

    private String semaphoreMissesMessage(String key) throws Exception {
        RSemaphore semaphore = a.getSemaphore(key);
        semaphore.trySetPermits(1);
        semaphore.acquire();
        return missed(() -> b.getSemaphore(key).acquire(), semaphore::release);
    }

    private String latchMissesMessage(String key) throws Exception {
        RCountDownLatch latch = a.getCountDownLatch(key);
        latch.trySetCount(1);
        return missed(() -> b.getCountDownLatch(key).await(), latch::countDown);
    }

    private String asyncWaiters(String key) throws Exception {
        RSemaphore semaphore = a.getSemaphore(key);
        semaphore.trySetPermits(5);
        semaphore.acquire(5);
        List<RFuture<Void>> waiting = new ArrayList<>();
        for (int i = 0; i < 5; i++) {
            waiting.add(b.getSemaphore(key).acquireAsync());
        }
        Thread.sleep(1000);
        semaphore.release(5);
        Thread.sleep(5000);
        long served = waiting.stream().filter(RFuture::isDone).count();
        return (served < 5 ? "" : "no: ") + "5 s after a release of 5 permits, " + served + " of 5 waiters were served, and "
            + semaphore.availablePermits() + " permits are free";
    }

    /** The server replies later than the client waits for a reply. */
    private String permitsAddedTwice(String key) throws Exception {
        RSemaphore semaphore = a.getSemaphore(key);
        semaphore.trySetPermits(1);
        Future<?> sleeping = other.submit(() -> {
            command("DEBUG SLEEP 4");
            return null;
        });
        Thread.sleep(300);
        semaphore.addPermits(1);
        sleeping.get();
        Thread.sleep(1000);
        int permits = semaphore.availablePermits();
        return (permits > 2 ? "" : "no: ") + "1 permit was added to 1; there are " + permits;
    }

    private String tokenOfReentry(String key) {
        RFencedLock lock = a.getFencedLock(key);
        long first = lock.lockAndGetToken();
        long second = lock.lockAndGetToken();
        lock.unlock();
        lock.unlock();
        return (second > first ? "" : "no: ") + "the token of one hold grew from " + first + " to " + second + " by re-entry";
    }
}
