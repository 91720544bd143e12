import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Predicate;

/** Passes connections to a server, and can delay requests or lose the replies to them. */
final class Relay {
    private final ServerSocket listener;
    private final String host;
    private final int port;
    private volatile Predicate<String> chosen = request -> false;
    private volatile long delay;
    private final AtomicInteger toLose = new AtomicInteger();
    private final AtomicInteger hits = new AtomicInteger();

    Relay(String address) {
        int colon = address.lastIndexOf(':');
        host = address.substring(0, colon);
        port = Integer.parseInt(address.substring(colon + 1));
        try {
            listener = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        daemon(this::accept);
    }

    String address() {
        return "127.0.0.1:" + listener.getLocalPort();
    }

    /** Keeps each request that contains text from the server for some milliseconds. */
    void delay(String text, long millis) {
        delay = millis;
        chosen = request -> request.contains(text);
    }

    /** Executes the next request that contains text, and closes the connection in place of the reply. */
    void loseReply(String text) {
        toLose.set(1);
        chosen = request -> request.contains(text);
    }

    /** How many requests were delayed, or have lost their reply. */
    int hits() {
        return hits.get();
    }

    private static void daemon(Runnable run) {
        Thread thread = new Thread(run);
        thread.setDaemon(true);
        thread.start();
    }

    private void accept() {
        try {
            while (true) {
                Connection c = new Connection(listener.accept(), new Socket(host, port));
                daemon(c::requests);
                daemon(c::replies);
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private final class Connection {
        private final Socket client;
        private final Socket server;
        private volatile boolean loses;

        Connection(Socket client, Socket server) {
            this.client = client;
            this.server = server;
        }

        void requests() {
            copy(client, server, bytes -> {
                if (!chosen.test(new String(bytes, StandardCharsets.ISO_8859_1))) {
                    return true;
                }
                if (delay > 0) {
                    hits.incrementAndGet();
                    try {
                        Thread.sleep(delay);
                    } catch (InterruptedException e) {
                        throw new IllegalStateException(e);
                    }
                }
                if (toLose.getAndUpdate(n -> Math.max(0, n - 1)) > 0) {
                    hits.incrementAndGet();
                    loses = true;
                }
                return true;
            });
        }

        void replies() {
            copy(server, client, bytes -> !loses);
        }

        /** Copies until the end of the connection, or until go says no. */
        private void copy(Socket from, Socket to, Predicate<byte[]> go) {
            byte[] buffer = new byte[64 << 10];
            try (from; to) {
                InputStream in = from.getInputStream();
                OutputStream out = to.getOutputStream();
                for (int n = in.read(buffer); n > 0; n = in.read(buffer)) {
                    if (!go.test(java.util.Arrays.copyOf(buffer, n))) {
                        return;
                    }
                    out.write(buffer, 0, n);
                }
            } catch (IOException e) {
                return; // the connection has ended
            }
        }
    }
}
