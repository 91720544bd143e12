package zookeeper

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// TestReplyWaitsForWatches: at a connection of a session with watches, go-zookeeper gets no reply with a zxid before it
// has sent the watches or given the connection up; other replies, and those at a connection without watches, at once.
func TestReplyWaitsForWatches(t *testing.T) {
	for _, c := range []struct {
		name      string
		rewatches bool
		zxid      uint64
		end       func(*wire) // nil: the reply comes without
	}{
		{"sent", true, 7, func(w *wire) { _, _ = w.Write(message(3, setWatches)) }},
		{"closed", true, 7, func(w *wire) { _ = w.Close() }},
		{"never sent", true, 7, func(w *wire) { <-time.After(w.limit) }},
		{"reply without a zxid", true, 0, nil},
		{"no watches", false, 7, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				here, server := net.Pipe()
				defer server.Close()
				go func() { _, _ = io.Copy(io.Discard, server) }()
				w := &wire{
					Conn: here, limit: time.Second, began: func(time.Time, int64, time.Duration) bool { return c.rewatches },
					answered: func(time.Time, bool) {}, sent: map[int32][]time.Time{}, paths: map[int32]string{}, watches: map[int32]watchOf{},
				}
				w.rewatched, w.rewatch = context.WithCancel(t.Context())
				defer w.Close()
				read := func(size int) chan struct{} {
					done := make(chan struct{})
					go func() { defer close(done); _, _ = io.ReadFull(w, make([]byte, size)) }()
					return done
				}
				_, _ = w.Write(message(0, 0))
				handshake := message(0, 1000, 0, 1)
				done := read(len(handshake))
				_, _ = server.Write(handshake)
				<-done
				_, _ = w.Write(message(2, 2))
				reply := message(2, uint32(c.zxid>>32), uint32(c.zxid), 0)
				done = read(len(reply))
				_, _ = server.Write(reply)
				synctest.Wait()
				select {
				case <-done:
					if c.end != nil {
						t.Error("the reply came before the watches were sent")
					}
				default:
					if c.end == nil {
						t.Fatal("the reply waits")
					}
				}
				if c.end != nil {
					c.end(w)
					<-done
				}
			})
		})
	}
}

// message is a message of 32-bit words.
func message(words ...uint32) []byte {
	m := binary.BigEndian.AppendUint32(nil, uint32(4*len(words)))
	for _, w := range words {
		m = binary.BigEndian.AppendUint32(m, w)
	}
	return m
}
