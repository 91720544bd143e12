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
import java.util.function.Supplier;
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
import org.redisson.config.ReadMode;

/**
 * Tries hypotheses of docs/contributors/hypotheses.md: Hypotheses HOST:PORT[,HOST:PORT…] ID [RUNS]. The servers need
 * enable-debug-command; for S12 they are the masters of a cluster, for S18 a master and its replica. A line for each run
 * says what was seen.
 */
public final class Hypotheses {
    private interface Attempt {
        /** Returns what was seen; "no: " and what was seen if it refutes the hypothesis. */
        String run(String key) throws Exception;
    }

    private final String[] addresses;
    private final String address; // the first of them
    private final RedissonClient a;
    private final RedissonClient b;
    private final ExecutorService other = Executors.newCachedThreadPool(run -> {
        Thread thread = new Thread(run);
        thread.setDaemon(true);
        return thread;
    });

    private Hypotheses(String servers) {
        addresses = servers.split(",");
        address = addresses[0];
        boolean several = addresses.length > 1; // a hypothesis makes its own clients of them
        a = several ? null : client(address, new Config());
        b = several ? null : client(address, new Config());
    }

    private static RedissonClient client(String address, Config config) {
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
            case "S03" -> h::partOfMultiLockExpires;
            case "S07" -> h::unlockOfExpiredFairLock;
            case "S08" -> h::downgradeWakesNobody;
            case "S09" -> h::reentryAddsLeases;
            case "S10" -> h::readReleaseShortensWrite;
            case "S11" -> h::readLockNotRenewed;
            case "S12" -> h::silentMasterDelaysRenewals;
            case "S13" -> h::semaphoreMissesMessage;
            case "S13b" -> h::latchMissesMessage;
            case "S14" -> h::asyncWaiters;
            case "S15" -> h::permitsAddedTwice;
            case "S17" -> h::releaseOfNothingRepeated;
            case "S18" -> h::unsyncedFencedLock;
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
        command(address, line);
    }

    private static void command(String address, String line) throws IOException {
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

    /**
     * The network delays the requests that extend the leases of a multi-lock after all its locks were granted, for longer
     * than the leases that they were granted with (twice the wait).
     */
    private String partOfMultiLockExpires(String key) throws Exception {
        Relay relay = new Relay(address);
        RedissonClient late = client(relay.address(), new Config());
        RLock multi = new RedissonMultiLock(late.getLock(key), late.getLock(key + "-2"));
        final long lease = 10_007; // no other request has this number
        relay.delay("" + lease, 1500);
        Future<Boolean> granted = other.submit(() -> multi.tryLock(300, lease, TimeUnit.MILLISECONDS));
        Thread.sleep(100);
        RLock first = b.getLock(key);
        boolean taken = first.tryLock(1000, 2000, TimeUnit.MILLISECONDS);
        boolean succeeded = granted.get();
        long ttl = ttl(key);
        boolean owned = first.isHeldByCurrentThread();
        first.forceUnlock();
        late.shutdown();
        return (taken && owned && succeeded ? "" : "no: ") + relay.hits() + " requests were delayed; tryLock() of two locks "
            + "returned " + succeeded + " while another client held the first: " + owned + ", whose lease of 2000 ms then had "
            + ttl + " ms left";
    }

    /** One thread releases its read lock while another acquires it, and the second holds it for longer than a lease. */
    private String readLockNotRenewed(String key) throws Exception {
        Config config = new Config();
        config.setLockWatchdogTimeout(5000);
        RedissonClient renewing = client(address, config);
        int apart = expiredReadLocks(renewing, key + "-apart-", false);
        int atOnce = expiredReadLocks(renewing, key + "-at-once-", true);
        renewing.shutdown();
        return (atOnce > 0 && apart == 0 ? "" : "no: ") + atOnce + " of " + PAIRS + " read locks expired that nobody released; "
            + apart + " where the release was over before the acquire";
    }

    private static final int PAIRS = 500;

    private int expiredReadLocks(RedissonClient client, String key, boolean atOnce) throws Exception {
        for (int i = 0; i < PAIRS; i++) {
            RLock lock = client.getReadWriteLock(key + i).readLock();
            lock.lockAsync(1).toCompletableFuture().get();
            CompletableFuture<?> released = lock.unlockAsync(1).toCompletableFuture();
            if (!atOnce) {
                released.get();
            }
            CompletableFuture.allOf(released, lock.lockAsync(2).toCompletableFuture()).get();
        }
        Thread.sleep(12_000);
        int expired = 0;
        for (int i = 0; i < PAIRS; i++) {
            expired += ttl(key + i) < 0 ? 1 : 0;
        }
        for (int i = 0; i < PAIRS; i++) {
            client.getReadWriteLock(key + i).readLock().unlockAsync(2).toCompletableFuture().handle((done, e) -> null).get();
        }
        return expired;
    }

    /** One of three masters of a cluster is silent for 50 s. The watchdog has its default, 30 s. */
    private String silentMasterDelaysRenewals(String key) throws Exception {
        final int silence = Integer.getInteger("silence", 50);
        Config config = new Config();
        for (String server : addresses) {
            config.useClusterServers().addNodeAddress("redis://" + server);
        }
        RedissonClient cluster = Redisson.create(config);
        final int locks = 30;
        for (int i = 0; i < locks; i++) {
            cluster.getLock(key + i).lock();
        }
        Future<?> silent = other.submit(() -> {
            command("DEBUG SLEEP " + silence);
            return null;
        });
        Thread.sleep(45_000);
        RedissonClient observer = null;
        int lost = 0;
        int healthy = 0;
        for (int n = 1; n < addresses.length; n++) {
            observer = client(addresses[n], new Config());
            for (int i = 0; i < locks; i++) {
                try {
                    healthy++;
                    lost += observer.getKeys().countExists(key + i) == 0 ? 1 : 0;
                } catch (org.redisson.client.RedisException moved) { // another master has its slot
                    healthy--;
                }
            }
            observer.shutdown();
        }
        silent.get();
        cluster.shutdown();
        return (lost > 0 ? "" : "no: ") + lost + " of " + healthy + " locks of masters that replied were lost within 45 s";
    }

    /**
     * The reply to the release of a write lock that does not exist is lost, and the client sends it again, as it does if it
     * is not configured with a single server.
     */
    private String releaseOfNothingRepeated(String key) throws Exception {
        Relay relay = new Relay(address);
        Config config = new Config();
        config.useMasterSlaveServers().setMasterAddress("redis://" + relay.address()).setReadMode(ReadMode.MASTER);
        RedissonClient client = Redisson.create(config);
        RLock write = client.getReadWriteLock(key).writeLock();
        String first = releaseOf(write);
        relay.loseReply("redisson_unlock_latch");
        String second = releaseOf(write);
        client.shutdown();
        boolean differs = first.startsWith("threw") && second.equals("returned normally");
        return (differs && relay.hits() > 0 ? "" : "no: ") + "unlock() of a write lock that nobody held " + first
            + "; when its reply was lost (" + relay.hits() + " times), it " + second;
    }

    private static String releaseOf(RLock lock) {
        try {
            lock.unlock();
        } catch (RuntimeException e) {
            return "threw " + e.getClass().getSimpleName();
        }
        return "returned normally";
    }

    /** The only replica of a master does not acknowledge for 8 s. A lock that is not fenced is undone, and tried again. */
    private String unsyncedFencedLock(String key) throws Exception {
        Config config = new Config();
        config.useMasterSlaveServers().setMasterAddress("redis://" + addresses[0]).addSlaveAddress("redis://" + addresses[1])
            .setReadMode(ReadMode.MASTER);
        RedissonClient replicated = Redisson.create(config);
        Future<?> silent = other.submit(() -> {
            command(addresses[1], "DEBUG SLEEP 8");
            return null;
        });
        Thread.sleep(500);
        String fenced = acquireUnsynced(replicated, key, () -> replicated.getFencedLock(key).tryLockAndGetToken());
        String plain = acquireUnsynced(replicated, key + "-plain", () -> replicated.getLock(key + "-plain").tryLock());
        silent.get();
        replicated.shutdown();
        return (fenced.equals("threw and left the key") && !plain.equals(fenced) ? "" : "no: ")
            + "with a replica that does not acknowledge, RFencedLock.tryLockAndGetToken() " + fenced + "; RLock.tryLock() "
            + plain;
    }

    private static String acquireUnsynced(RedissonClient client, String key, Supplier<?> acquire) {
        String end;
        try {
            end = "returned " + acquire.get();
        } catch (RuntimeException e) {
            end = "threw";
        }
        return end + " and left " + (client.getKeys().countExists(key) > 0 ? "the key" : "no key");
    }
}
