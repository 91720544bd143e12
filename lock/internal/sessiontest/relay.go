// Package sessiontest has what the tests of packages lock/etcd and lock/zookeeper share.
package sessiontest

import (
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// Relay passes bytes to a server, and can keep what the server sends.
type Relay struct {
	Addr string
	Sent atomic.Int64 // bytes from clients
	Open atomic.Int64 // connections

	mu    sync.Mutex
	held  chan struct{} // closed: bytes pass
	conns []net.Conn
}

// startRelay starts a relay to target, which ends with the test.
func startRelay(t testing.TB, target string) *Relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &Relay{Addr: l.Addr().String(), held: make(chan struct{})}
	close(r.held)
	t.Cleanup(func() {
		_ = l.Close()
		r.Reset()
	})
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", target)
			if err != nil {
				_ = client.Close()
				continue
			}
			r.Open.Add(1)
			r.mu.Lock()
			r.conns = append(r.conns, client, server)
			r.mu.Unlock()
			go r.pump(server, client, false)
			go r.pump(client, server, true)
		}
	}()
	return r
}

// pump passes bytes from one end to the other until one of them is closed; answers are kept while the relay holds.
func (r *Relay) pump(to, from net.Conn, answers bool) {
	defer to.Close()
	if answers {
		defer r.Open.Add(-1)
	}
	buf := make([]byte, 4<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		if !answers {
			r.Sent.Add(int64(n))
		} else {
			r.mu.Lock()
			held := r.held
			r.mu.Unlock()
			<-held
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

// Hold keeps what the server sends from now on.
func (r *Relay) Hold() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held = make(chan struct{})
}

// Pass delivers what was kept, and keeps nothing from now on.
func (r *Relay) Pass() {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.held:
	default:
		close(r.held)
	}
}

// Reset closes every connection, with what was kept, and keeps nothing from now on.
func (r *Relay) Reset() {
	r.mu.Lock()
	for _, c := range r.conns {
		_ = c.Close()
	}
	r.conns = nil
	r.mu.Unlock()
	r.Pass()
}
