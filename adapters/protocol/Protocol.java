import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/**
 * The client's end of the protocol (docs/reference/protocol.md) for lock libraries in Java. The owner of a lock is a thread in
 * these libraries, and a name in the protocol, so each owner has a thread while it holds or requests something. H is
 * the state kept for each hold.
 */
abstract class Protocol<H> {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final PrintStream OUT =
        new PrintStream(new FileOutputStream(FileDescriptor.out), false, StandardCharsets.UTF_8);

    final Map<String, H> holds = new ConcurrentHashMap<>(); // by owner
    String kind; // of lock
    private final Map<String, ExecutorService> threads = new ConcurrentHashMap<>();

    /** Connects, and replies with the capabilities. */
    abstract ObjectNode open(JsonNode setup) throws Exception;

    /** Executes an operation on a lock. */
    abstract ObjectNode perform(JsonNode request) throws Exception;

    /** Whether an owner holds something, for which its thread has to stay. */
    boolean holds(String owner) {
        return holds.containsKey(owner);
    }

    /** Serves requests for the kind of lock that the command line names, until close or the end of input. */
    static void serve(Protocol<?> client, String[] args) throws Exception {
        client.kind = args[0];
        System.setOut(System.err); // what the library prints must not get into the protocol
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            JsonNode request = JSON.readTree(line);
            if (request.path("op").asText().equals("close")) {
                reply(request, ok());
                break;
            }
            client.serve(request);
        }
        Runtime.getRuntime().halt(0); // threads of the library must not keep the process
    }

    interface Step {
        ObjectNode run() throws Exception;
    }

    private void serve(JsonNode request) throws InterruptedException {
        switch (request.path("op").asText()) {
            case "init" -> reply(request, attempt(() -> open(request.path("setup"))));
            case "work" -> {
                Thread.sleep((long) request.path("ms").asDouble());
                reply(request, ok());
            }
            default -> {
                String owner = owner(request);
                threads.computeIfAbsent(owner, name -> Executors.newSingleThreadExecutor(run -> {
                    Thread thread = new Thread(run, name);
                    thread.setDaemon(true);
                    return thread;
                })).execute(() -> {
                    ObjectNode reply = attempt(() -> perform(request));
                    if (!holds(owner) && !reply.path("type").asText().equals("info")) {
                        ExecutorService done = threads.remove(owner);
                        if (done != null) {
                            done.shutdown();
                        }
                    }
                    reply(request, reply);
                });
            }
        }
    }

    static String owner(JsonNode request) {
        return request.path("owner").asText() + " " + request.path("key").asText();
    }

    /** How long the request may wait, in ms. */
    static long wait(JsonNode request) {
        return request.path("op").asText().equals("try") ? 0 : (long) request.path("wait_ms").asDouble();
    }

    static ObjectNode attempt(Step step) {
        try {
            return step.run();
        } catch (IllegalMonitorStateException e) { // the hold is not this thread's
            return failed("not-held", String.valueOf(e));
        } catch (Throwable e) { // sent, and perhaps executed
            e.printStackTrace();
            return JSON.createObjectNode().put("type", "info").put("code", "unknown").put("error", String.valueOf(e));
        }
    }

    private static void reply(JsonNode request, ObjectNode reply) {
        reply.set("id", request.get("id"));
        say(reply);
    }

    private static synchronized void say(ObjectNode line) {
        OUT.print(line + "\n");
        OUT.flush();
    }

    /** Says that a hold is lost. */
    static void lost(JsonNode request) {
        say(object().put("event", "lost").put("key", request.path("key").asText())
            .put("owner", request.path("owner").asText()).put("mono_ns", System.nanoTime()));
    }

    static ObjectNode object() {
        return JSON.createObjectNode();
    }

    static ObjectNode ok() {
        return object().put("type", "ok");
    }

    /** The reply to init, with what the lock can do. */
    static ObjectNode can(List<String> capabilities) {
        ObjectNode reply = ok();
        ArrayNode can = reply.putArray("can");
        capabilities.forEach(can::add);
        return reply;
    }

    static ObjectNode failed(String code, String text) {
        return object().put("type", "fail").put("code", code).put("error", text);
    }

    static ObjectNode held() {
        return failed("held", "not granted in time");
    }

    static ObjectNode unknown(String text) {
        return failed("unknown-op", text);
    }
}
