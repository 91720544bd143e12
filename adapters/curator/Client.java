import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMultiLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreMutex;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.ExponentialBackoffRetry;
import org.apache.zookeeper.SourceSocket;

/** A client of the protocol (docs/reference/protocol.md) for Curator's locks: Client KIND. */
public final class Client extends Protocol<Client.Hold> {
    private static final Map<String, List<String>> CAN = Map.of(
        "mutex", List.of("reentrant", "try", "watchdog", "wakes", "fair", "keeps-grants"),
        "mutex-unwatched", List.of("reentrant", "try", "watchdog", "wakes", "fair", "keeps-grants"),
        "semaphore-mutex", List.of("try", "watchdog", "wakes", "keeps-grants"),
        "read-write", List.of("reentrant", "try", "watchdog", "wakes", "read-write", "keeps-grants"),
        "semaphore", List.of("permits", "try", "watchdog", "wakes", "keeps-grants"),
        "multi", List.of("reentrant", "try", "watchdog", "wakes", "multi-key", "keeps-grants"));

    /** What an owner holds of a key. */
    static final class Hold {
        final JsonNode request;
        final InterProcessLock lock; // null: leases
        final Collection<Lease> leases;
        int count = 1;

        Hold(JsonNode request, InterProcessLock lock, Collection<Lease> leases) {
            this.request = request;
            this.lock = lock;
            this.leases = leases;
        }
    }

    private String servers;
    private CuratorFramework zk;
    private int session; // ms
    private boolean used; // a lock was requested

    public static void main(String[] args) throws Exception {
        serve(new Client(), args);
    }

    @Override
    ObjectNode open(JsonNode setup) throws Exception {
        List<String> addresses = new ArrayList<>();
        setup.path("endpoints").path("addrs").forEach(a -> addresses.add(a.asText()));
        servers = String.join(",", addresses);
        String source = setup.path("endpoints").path("source").asText("");
        SourceSocket.source = source.isEmpty() ? null : source;
        System.setProperty("zookeeper.clientCnxnSocket", "org.apache.zookeeper.SourceSocket");
        System.setProperty("zookeeper.sasl.client", "false");
        warmUp();
        session = millis(setup.path("options").path("session").asText("4s"));
        zk = connect(session);
        return can(CAN.get(kind));
    }

    /** What an option such as 1500ms or 12s says. */
    private static int millis(String duration) {
        boolean whole = !duration.endsWith("ms");
        double number = Double.parseDouble(duration.substring(0, duration.length() - (whole ? 1 : 2)));
        return (int) (whole ? number * 1000 : number);
    }

    /** Loads the classes, which takes seconds on a busy machine: a cold first acquire would look like a lost wake-up. */
    private void warmUp() throws Exception {
        ObjectNode request = object().put("op", "acquire").put("owner", "warm-up").put("limit", 1)
            .put("key", "warm-up-" + UUID.randomUUID()).put("lease_ms", 30_000).put("wait_ms", 10_000);
        perform(request);
        perform(request.deepCopy().put("op", "release"));
        zk.close();
        used = false;
    }

    private CuratorFramework connect(int session) throws Exception {
        CuratorFramework connected = CuratorFrameworkFactory.builder().connectString(servers)
            .sessionTimeoutMs(session).connectionTimeoutMs(session).retryPolicy(new ExponentialBackoffRetry(100, 3)).build();
        if (!kind.equals("mutex-unwatched")) {
            connected.getConnectionStateListenable().addListener((c, state) -> changed(state));
        }
        connected.start();
        if (!connected.blockUntilConnected(12, TimeUnit.SECONDS)) {
            throw new IllegalStateException("no connection to " + servers);
        }
        return connected;
    }

    /** What the documentation asks of users: without a connection, no lock is certain. */
    private void changed(ConnectionState state) {
        if (state == ConnectionState.SUSPENDED || state == ConnectionState.LOST) {
            holds.values().forEach(hold -> lost(hold.request));
        }
    }

    /** A session as long as the first lease. */
    private synchronized CuratorFramework zk(JsonNode request) throws Exception {
        int lease = (int) request.path("lease_ms").asDouble();
        if (!used && lease > 0 && lease != session) {
            if (zk != null) {
                zk.close();
            }
            session = lease;
            zk = connect(lease);
        }
        used = true;
        return zk;
    }

    @Override
    ObjectNode perform(JsonNode request) throws Exception {
        String op = request.path("op").asText();
        if (!Set.of("acquire", "try", "release").contains(op) || request.has("keys") && !kind.equals("multi")
            || request.has("permits") && !kind.equals("semaphore")) {
            return unknown(op);
        }
        String mode = request.path("mode").asText();
        if (!mode.isEmpty() && (!kind.equals("read-write") || !Set.of("read", "write").contains(mode))) {
            return unknown("mode " + mode);
        }
        String owner = owner(request);
        Hold hold = holds.get(owner);
        if (op.equals("release")) {
            return hold == null ? failed("not-held", "nothing is held") : release(owner, hold);
        }
        if (kind.equals("semaphore")) {
            Collection<Lease> leases = new InterProcessSemaphoreV2(zk(request), path(request.path("key")),
                Math.max(1, request.path("limit").asInt())).acquire(request.path("permits").asInt(1), wait(request),
                TimeUnit.MILLISECONDS);
            return granted(leases != null, owner, new Hold(request, null, leases));
        }
        boolean again = hold != null && mode.equals(hold.request.path("mode").asText());
        InterProcessLock lock = again ? hold.lock : lock(request, mode);
        boolean granted = lock.acquire(wait(request), TimeUnit.MILLISECONDS);
        if (granted && again) {
            hold.count++;
            return ok();
        }
        return granted(granted, owner, new Hold(request, lock, null));
    }

    private ObjectNode granted(boolean granted, String owner, Hold hold) {
        if (!granted) {
            return held();
        }
        holds.put(owner, hold);
        return ok();
    }

    private ObjectNode release(String owner, Hold hold) throws Exception {
        hold.count--;
        if (hold.count == 0) {
            holds.remove(owner);
        }
        if (hold.lock != null) {
            hold.lock.release();
        } else {
            for (Lease lease : hold.leases) {
                lease.close();
            }
        }
        return ok();
    }

    private static String path(JsonNode key) {
        return "/chaos/" + key.asText();
    }

    private InterProcessLock lock(JsonNode request, String mode) throws Exception {
        CuratorFramework zk = zk(request);
        String path = path(request.path("key"));
        switch (kind) {
            case "semaphore-mutex":
                return new InterProcessSemaphoreMutex(zk, path);
            case "read-write":
                InterProcessReadWriteLock both = new InterProcessReadWriteLock(zk, path);
                return mode.equals("read") ? both.readLock() : both.writeLock();
            case "multi":
                List<String> paths = new ArrayList<>();
                request.path("keys").forEach(k -> paths.add(path(k)));
                return new InterProcessMultiLock(zk, paths.isEmpty() ? List.of(path) : paths);
            default:
                return new InterProcessMutex(zk, path);
        }
    }
}
