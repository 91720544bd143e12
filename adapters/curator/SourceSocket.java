package org.apache.zookeeper;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.channels.SocketChannel;
import org.apache.zookeeper.client.ZKClientConfig;

/**
 * Connects from the address of this client. ZooKeeper's client has no option for it, and the method that opens its sockets
 * is visible in this package only.
 */
public final class SourceSocket extends ClientCnxnSocketNIO {
    /** The address; null: any. */
    public static volatile String source;

    public SourceSocket(ZKClientConfig config) throws IOException {
        super(config);
    }

    @Override
    SocketChannel createSock() throws IOException {
        SocketChannel channel = super.createSock();
        if (source != null) {
            channel.bind(new InetSocketAddress(source, 0));
        }
        return channel;
    }
}
