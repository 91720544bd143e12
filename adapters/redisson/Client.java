import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.netty.bootstrap.Bootstrap;
import io.netty.channel.Channel;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.RedissonMultiLock;
import org.redisson.RedissonRedLock;
import org.redisson.api.RFencedLock;
import org.redisson.api.RLock;
import org.redisson.api.RPermitExpirableSemaphore;
import org.redisson.api.RSemaphore;
import org.redisson.api.RedissonClient;
import org.redisson.client.NettyHook;
import org.redisson.config.BaseConfig;
import org.redisson.config.BaseMasterSlaveServersConfig;
import org.redisson.config.Config;

/** A client of the protocol (docs/reference/protocol.md) for Redisson's locks: Client KIND. It counts how often an owner has entered. */
public final class Client extends Protocol<Integer> {
    private static final Map<String, List<String>> CAN = Map.of(
        "lock", List.of("reentrant", "try", "watchdog", "wakes"),
        "fair", List.of("reentrant", "try", "watchdog", "wakes", "fair"),
        "spin", List.of("reentrant", "try", "watchdog"),
        "fenced", List.of("reentrant", "try", "watchdog", "wakes", "fenced"),
        "read-write", List.of("reentrant", "try", "watchdog", "wakes", "read-write", "downgrade"),
        "multi", List.of("reentrant", "try", "watchdog", "multi-key"),
        "redlock", List.of("try"),
        "semaphore", List.of("permits", "try", "wakes"),
        "permits", List.of("permits", "try", "wakes"));

    private final List<RedissonClient> servers = new ArrayList<>();
    private final Map<String, List<String>> permits = new ConcurrentHashMap<>();

    public static void main(String[] args) throws Exception {
        serve(new Client(), args);
    }

    @Override
    boolean holds(String owner) {
        return super.holds(owner) || permits.containsKey(owner);
    }

    @Override
    ObjectNode open(JsonNode setup) throws Exception {
        JsonNode endpoints = setup.path("endpoints");
        List<String> addresses = new ArrayList<>();
        endpoints.path("addrs").forEach(a -> addresses.add("redis://" + a.asText()));
        switch (endpoints.path("kind").asText()) {
            case "quorum" -> addresses.forEach(a -> single(setup, a));
            case "sentinel" -> {
                Config config = config(setup);
                var servers = config.useSentinelServers().setMasterName(endpoints.path("master_name").asText())
                    .setCheckSentinelsList(false).setScanInterval(500);
                endpoints.path("sentinels").forEach(a -> servers.addSentinelAddress("redis://" + a.asText()));
                password(servers, setup);
                if (endpoints.hasNonNull("password")) {
                    servers.setSentinelPassword(endpoints.path("password").asText());
                }
                pools(servers);
                this.servers.add(Redisson.create(config));
            }
            case "cluster" -> {
                Config config = config(setup);
                var servers = config.useClusterServers().setScanInterval(500)
                    .addNodeAddress(addresses.toArray(new String[0]));
                password(servers, setup);
                pools(servers);
                this.servers.add(Redisson.create(config));
            }
            default -> single(setup, addresses.get(0));
        }
        warmUp();
        return can(CAN.get(kind));
    }

    /**
     * Acquires, waits for and releases a lock on a key of this client's own, so that the classes are loaded: in a JVM that
     * has just started, the first acquire takes seconds on a busy machine, and would look like a lost wake-up.
     */
    private void warmUp() throws Exception {
        ObjectNode request = object().put("op", "acquire").put("owner", "warm-up")
            .put("key", "warm-up-" + UUID.randomUUID()).put("lease_ms", 60_000).put("wait_ms", 30_000).put("limit", 1);
        perform(request);
        Thread waiter = new Thread(() -> attempt(() -> perform(request.deepCopy().put("owner", "waiter").put("wait_ms", 50))));
        waiter.start();
        waiter.join();
        perform(request.put("op", "release"));
        if (kind.equals("semaphore") || kind.equals("permits")) {
            servers.get(0).getKeys().delete(request.path("key").asText());
        }
    }

    private void single(JsonNode setup, String address) {
        Config config = config(setup);
        var server = config.useSingleServer().setConnectionMinimumIdleSize(1).setConnectionPoolSize(8).setAddress(address);
        password(server, setup);
        servers.add(Redisson.create(config));
    }

    private static void password(BaseConfig<?> servers, JsonNode setup) {
        if (setup.path("endpoints").hasNonNull("password")) {
            servers.setPassword(setup.path("endpoints").path("password").asText());
        }
    }

    private static void pools(BaseMasterSlaveServersConfig<?> servers) {
        servers.setMasterConnectionMinimumIdleSize(1).setSlaveConnectionMinimumIdleSize(1);
        servers.setMasterConnectionPoolSize(8).setSlaveConnectionPoolSize(8);
    }

    /** Redisson's defaults but for the threads, of which a client of a test needs few, and the source address. */
    private static Config config(JsonNode setup) {
        Config config = new Config().setThreads(2).setNettyThreads(4);
        String lease = setup.path("options").path("lease").asText("");
        if (!lease.isEmpty()) {
            config.setLockWatchdogTimeout(millis(lease));
        }
        String source = setup.path("endpoints").path("source").asText("");
        if (!source.isEmpty()) {
            config.setNettyHook(new NettyHook() {
                @Override
                public void afterBoostrapInitialization(Bootstrap bootstrap) {
                    bootstrap.localAddress(new InetSocketAddress(source, 0));
                }

                @Override
                public void afterChannelInitialization(Channel channel) {
                }
            });
        }
        return config;
    }

    /** The durations of a scenario are Go's: 1500ms, 1s. */
    private static long millis(String duration) {
        if (duration.endsWith("ms")) {
            return (long) Double.parseDouble(duration.substring(0, duration.length() - 2));
        }
        return (long) (1000 * Double.parseDouble(duration.substring(0, duration.length() - 1)));
    }

    private RLock lock(JsonNode request) {
        String key = request.path("key").asText();
        RedissonClient server = servers.get(0);
        return switch (kind) {
            case "fair" -> server.getFairLock(key);
            case "spin" -> server.getSpinLock(key);
            case "fenced" -> server.getFencedLock(key);
            case "read-write" -> request.path("mode").asText().equals("read")
                ? server.getReadWriteLock(key).readLock() : server.getReadWriteLock(key).writeLock();
            case "redlock" -> new RedissonRedLock(servers.stream().map(s -> s.getLock(key)).toArray(RLock[]::new));
            case "multi" -> new RedissonMultiLock(keys(request).stream().map(server::getLock).toArray(RLock[]::new));
            default -> server.getLock(key);
        };
    }

    @Override
    ObjectNode perform(JsonNode request) throws Exception {
        String op = request.path("op").asText();
        boolean counts = kind.equals("semaphore") || kind.equals("permits");
        if (!Set.of("acquire", "try", "release").contains(op) || request.has("keys") && !kind.equals("multi")) {
            return unknown(op);
        }
        String mode = request.path("mode").asText();
        if (!mode.isEmpty() && (!kind.equals("read-write") || !Set.of("read", "write").contains(mode))) {
            return unknown("mode " + mode);
        }
        long lease = (long) request.path("lease_ms").asDouble();
        long wait = wait(request);
        if (counts) {
            return kind.equals("permits") ? permits(request, op, lease, wait) : semaphore(request, op, wait);
        }
        String owner = owner(request);
        RLock lock = lock(request);
        if (op.equals("release")) {
            holds.merge(owner, -1, (a, b) -> a + b > 0 ? a + b : null);
            lock.unlock();
            return ok();
        }
        ObjectNode reply = ok();
        if (lock instanceof RFencedLock fenced) {
            Long token = lease > 0 ? fenced.tryLockAndGetToken(wait, lease, TimeUnit.MILLISECONDS)
                : fenced.tryLockAndGetToken(wait, TimeUnit.MILLISECONDS);
            if (token == null) {
                return held();
            }
            reply.put("token", token);
        } else if (!(lease > 0 ? lock.tryLock(wait, lease, TimeUnit.MILLISECONDS)
            : lock.tryLock(wait, TimeUnit.MILLISECONDS))) {
            return held();
        }
        holds.merge(owner, 1, Integer::sum);
        return reply;
    }

    /** All keys of a request, of which the first is its key. */
    private static List<String> keys(JsonNode request) {
        if (!request.has("keys")) {
            return List.of(request.path("key").asText());
        }
        List<String> keys = new ArrayList<>();
        request.path("keys").forEach(k -> keys.add(k.asText()));
        return keys;
    }

    private ObjectNode semaphore(JsonNode request, String op, long wait) throws Exception {
        RSemaphore semaphore = servers.get(0).getSemaphore(request.path("key").asText());
        int n = request.path("permits").asInt(1);
        if (op.equals("release")) {
            if (permits.remove(owner(request)) == null) { // the library would add permits
                return failed("not-held", "nothing is held");
            }
            semaphore.release(n);
            return ok();
        }
        semaphore.trySetPermits(request.path("limit").asInt(1));
        if (!semaphore.tryAcquire(n, Duration.ofMillis(wait))) {
            return held();
        }
        permits.put(owner(request), List.of());
        return ok();
    }

    private ObjectNode permits(JsonNode request, String op, long lease, long wait) throws Exception {
        RPermitExpirableSemaphore semaphore = servers.get(0).getPermitExpirableSemaphore(request.path("key").asText());
        String owner = owner(request);
        if (op.equals("release")) {
            List<String> ids = permits.remove(owner);
            if (ids == null || semaphore.tryRelease(ids) == 0) {
                return failed("not-held", "nothing is held");
            }
            return ok();
        }
        semaphore.trySetPermits(request.path("limit").asInt(1));
        List<String> ids = semaphore.tryAcquire(request.path("permits").asInt(1), wait, lease > 0 ? lease : -1,
            TimeUnit.MILLISECONDS);
        if (ids.isEmpty()) {
            return held();
        }
        permits.put(owner, ids);
        return ok();
    }
}
