// A lock client for lockchaos that needs only the Java platform.
//
// The lock is that of the Redis documentation for one master: SET key owner NX PX lease, released by
// compare-and-delete. It waits by polling and has no fencing tokens. Protocol: docs/reference/protocol.md. Run it with
//
//     javac -d bin/java examples/Client.java
//     chaos run --scenario gc-pause --lock "exec:java -cp bin/java Client" ...
import java.io.BufferedInputStream;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.net.ConnectException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

public class Client {
    static final String RELEASE =
        "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0";
    static final String RENEW =
        "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) end return 0";
    static final String NOT_HELD = "\"type\":\"fail\",\"code\":\"not-held\",\"error\":\"not held by this owner\"";

    /** One connection, opened on demand, closed after an error. */
    static class Redis {
        final String host, source, password;
        final int port;
        Socket conn;
        InputStream in;

        Redis(String init) {
            String address = field(init, "addrs");
            host = address.substring(0, address.lastIndexOf(':'));
            port = Integer.parseInt(address.substring(address.lastIndexOf(':') + 1));
            source = field(init, "source");
            password = field(init, "password"); // of every server of the run
        }

        /** The reply: null, or the text after its type. */
        String call(Object... words) throws IOException {
            try {
                if (conn == null) {
                    conn = new Socket();
                    conn.setTcpNoDelay(true);
                    conn.setSoTimeout(2000);
                    if (source != null) conn.bind(new InetSocketAddress(source, 0)); // faults identify us by source
                    conn.connect(new InetSocketAddress(host, port), 2000);
                    in = new BufferedInputStream(conn.getInputStream());
                    if (password != null) exchange("AUTH", password);
                }
                return exchange(words);
            } catch (IOException e) { // replies still on this connection are lost
                if (conn != null) conn.close();
                conn = null;
                throw e;
            }
        }

        String exchange(Object... words) throws IOException {
            StringBuilder b = new StringBuilder("*" + words.length + "\r\n");
            for (Object w : words) b.append("$" + w.toString().length() + "\r\n" + w + "\r\n");
            conn.getOutputStream().write(b.toString().getBytes(StandardCharsets.US_ASCII));
            String line = line();
            if (line.equals("$-1")) return null;
            if (line.startsWith("-")) throw new IOException(line);
            return line.substring(1);
        }

        String line() throws IOException {
            StringBuilder b = new StringBuilder();
            for (int c = in.read(); c != '\n'; c = in.read()) {
                if (c < 0) throw new IOException("connection closed by the server");
                if (c != '\r') b.append((char) c);
            }
            return b.toString();
        }
    }

    /** The first value of a field: requests are small, and no name occurs twice. null: it is not there. */
    static String field(String json, String name) {
        Matcher m = Pattern.compile("\"" + name + "\":\\[?\"?([^\",}\\]]+)").matcher(json);
        return m.find() ? m.group(1) : null;
    }

    static double number(String json, String name) {
        String text = field(json, name);
        return text == null ? 0 : Double.parseDouble(text);
    }

    static long lease(String request) {
        long lease = (long) number(request, "lease_ms");
        return lease > 0 ? lease : 10_000;
    }

    static String granted(long lease, long start) {
        long now = System.nanoTime(); // CLOCK_MONOTONIC on Linux
        double valid = lease - (now - start) / 1e6;
        return "\"type\":\"ok\",\"count\":1,\"valid_ms\":" + valid + ",\"mono_ns\":" + now;
    }

    static String acquire(Redis redis, String request, String op) throws Exception {
        String key = field(request, "key"), owner = field(request, "owner");
        long deadline = System.nanoTime() + (long) (number(request, "wait_ms") * 1e6);
        while (true) {
            long start = System.nanoTime(); // before the server starts the lease
            if (redis.call("SET", key, owner, "NX", "PX", lease(request)) != null) {
                if (System.nanoTime() - start < lease(request) * 1_000_000) return granted(lease(request), start);
                redis.call("EVAL", RELEASE, 1, key, owner); // the reply came when the lease was over
            }
            if (op.equals("try") || System.nanoTime() >= deadline) {
                return "\"type\":\"fail\",\"code\":\"held\",\"error\":\"held by another owner\"";
            }
            Thread.sleep(10);
        }
    }

    static String handle(Redis redis, String request) throws Exception {
        String op = field(request, "op"), key = field(request, "key"), owner = field(request, "owner");
        if (field(request, "mode") != null) op = "an operation with a mode";
        long start = System.nanoTime();
        switch (op) {
            case "acquire": case "try":
                return acquire(redis, request, op);
            case "renew":
                boolean kept = !redis.call("EVAL", RENEW, 1, key, owner, lease(request)).equals("0");
                return kept ? granted(lease(request), start) : NOT_HELD;
            case "release":
                return redis.call("EVAL", RELEASE, 1, key, owner).equals("0") ? NOT_HELD : "\"type\":\"ok\"";
            case "work":
                Thread.sleep((long) number(request, "ms")); // the critical section, in this process
                return "\"type\":\"ok\"";
            case "close":
                return "\"type\":\"ok\"";
            default:
                return "\"type\":\"fail\",\"code\":\"unknown-op\",\"error\":\"unknown op " + op + "\"";
        }
    }

    public static void main(String[] args) throws Exception {
        Redis redis = null;
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String request; (request = requests.readLine()) != null; ) {
            String reply;
            try {
                if (field(request, "op").equals("init")) {
                    redis = new Redis(request);
                    reply = "\"type\":\"ok\",\"can\":[\"try\",\"renew\"]";
                } else {
                    reply = handle(redis, request);
                }
            } catch (ConnectException e) { // nothing was sent: certainly no effect
                reply = "\"type\":\"fail\",\"code\":\"refused\",\"error\":\"refused\"";
            } catch (IOException e) { // sent: effect unknown
                reply = "\"type\":\"info\",\"code\":\"unknown\",\"error\":\"" + e.getMessage().replace('"', '\'') + "\"";
            }
            System.out.println("{\"id\":" + field(request, "id") + "," + reply + "}");
        }
    }
}
