package locks

import (
	"bufio"
	"context"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/topology"
)

// TestFailedDialsDoNotStopDialing: go-redis counts failed dials over the life of a pool, and from its size on fails
// commands without dialing, while it dials once a second in the background. A promotion must not be hidden by that.
func TestFailedDialsDoNotStopDialing(t *testing.T) {
	const commands = 300
	var dials atomic.Int64
	refuse := func(context.Context, string, string) (net.Conn, error) {
		dials.Add(1)
		return nil, syscall.ECONNREFUSED
	}
	for _, kind := range []string{topology.Single, topology.Sharded} {
		for name, send := range map[string]func(redis.UniversalClient) error{
			"command":  func(c redis.UniversalClient) error { return c.Ping(t.Context()).Err() },
			"pipeline": func(c redis.UniversalClient) error { _, err := c.Pipelined(t.Context(), twoPings(t)); return err },
		} {
			t.Run(kind+" "+name, func(t *testing.T) {
				conns, err := connect(client.Setup{Endpoints: topology.Endpoints{Kind: kind, Addrs: []string{"10.0.0.1:6379"}}, Dial: refuse}, 0)
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = closeAll(conns) }()
				dials.Store(0)
				for i := range commands {
					before := dials.Load()
					if err := send(conns[0]); err == nil {
						t.Fatal("a refused dial, and no error")
					}
					if dials.Load() == before {
						t.Fatalf("after %d failed dials a command did not dial", i)
					}
				}
			})
		}
	}
}

func twoPings(t *testing.T) func(redis.Pipeliner) error {
	return func(p redis.Pipeliner) error {
		p.Ping(t.Context())
		p.Ping(t.Context())
		return nil
	}
}

// TestClientOfAClusterReadsNoTableOfCommands: go-redis reads that table from one server under a mutex, for which every
// other command waits. If that server hangs, so does the client, and a simulation.
func TestClientOfAClusterReadsNoTableOfCommands(t *testing.T) {
	sent := make(chan string, 100)
	dial := func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go serveSlots(theirs, sent)
		return ours, nil
	}
	conns, err := connect(client.Setup{Endpoints: topology.Endpoints{Kind: topology.Sharded, Addrs: []string{"10.0.0.1:6379"}}, Dial: dial}, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = closeAll(conns) }()
	if err := conns[0].Get(t.Context(), "orders").Err(); err == nil || !strings.Contains(err.Error(), "unknown command") {
		t.Fatalf("GET: %v, want the reply of the server", err)
	}
	var got []string
	for len(sent) > 0 {
		got = append(got, <-sent)
	}
	if slices.Contains(got, "command") || !slices.Contains(got, "get") {
		t.Errorf("the client has sent %v", got)
	}
}

// serveSlots is a server that has all slots of a cluster and knows no command but CLUSTER.
func serveSlots(conn net.Conn, sent chan<- string) {
	in := bufio.NewReader(conn)
	line := func() string {
		text, _ := in.ReadString('\n')
		return strings.TrimSpace(text)
	}
	for {
		n, err := strconv.Atoi(strings.TrimPrefix(line(), "*"))
		if err != nil {
			return
		}
		var args []string
		for range n {
			line() // the length of the argument
			args = append(args, strings.ToLower(line()))
		}
		sent <- args[0]
		answer := "-ERR unknown command\r\n"
		if args[0] == "cluster" {
			answer = "*1\r\n*3\r\n:0\r\n:16383\r\n*3\r\n$8\r\n10.0.0.1\r\n:6379\r\n$2\r\nn1\r\n"
		}
		if _, err := conn.Write([]byte(answer)); err != nil {
			return
		}
	}
}

// TestOnlyAClusterHasSlots: option slot_reload sets the interval of a cluster client, and nothing else has slots.
func TestOnlyAClusterHasSlots(t *testing.T) {
	for _, x := range []struct {
		kind         string
		reload, want time.Duration // want 0: an error
	}{{topology.Sharded, 0, time.Second}, {topology.Sharded, time.Minute, time.Minute}, {topology.Single, time.Minute, 0}, {topology.Quorum, time.Minute, 0}} {
		conns, err := connect(client.Setup{Endpoints: topology.Endpoints{Kind: x.kind, Addrs: []string{"10.0.0.1:6379"}}}, x.reload)
		if x.want == 0 {
			if err == nil || !strings.Contains(err.Error(), optionSlotReload) {
				t.Errorf("%s, %s: %v", x.kind, x.reload, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := conns[0].(*redis.ClusterClient).Options().ClusterStateReloadInterval; got != x.want {
			t.Errorf("%s, %s: the client reloads every %s, want %s", x.kind, x.reload, got, x.want)
		}
		if err := closeAll(conns); err != nil {
			t.Error(err)
		}
	}
}
