package zookeeper

import (
	"context"
	"encoding/binary"
	"net"
	"sync"
	"time"
)

// wire is a connection to a server that parses its traffic, to know which requests were answered and when they were
// sent, which go-zookeeper does not report. Both directions are sequences of messages, each preceded by its length.
// The first message is about the session; every other one begins with the number of the request (zookeeper.jute).
type wire struct {
	net.Conn
	limit    time.Duration // of the handshake, and of the wait for rewatched
	answered func(sent time.Time, ping bool)
	creating func(path string)             // a request that creates this node is being sent: every later one is behind it
	created  func(path string, zxid int64) // it was executed; zxid is from the reply
	watched  func(watchOf)                 // a request has set a watch, and its whole reply was read
	began    func(sent time.Time, session int64, timeout time.Duration) (rewatches bool)

	// A reply with a zxid waits for rewatched, no longer than limit, if the watches of the session are sent again:
	// go-zookeeper reads the last zxid for that without a lock (https://github.com/go-zookeeper/zk/pull/35).
	rewatched context.Context
	rewatch   context.CancelFunc

	mu      sync.Mutex
	sent    map[int32][]time.Time // by number; pings share one
	paths   map[int32]string      // of the nodes that requests without a reply create, by number
	watches map[int32]watchOf     // that requests without a reply set, by number
	watch   *watchOf              // set by the message that is being read
	hello   time.Time             // when the handshake was sent; zero: not yet
	opened  bool                  // the handshake was answered
	head    []byte                // the part read so far of a message's length and first bytes
	rest    int                   // bytes of the message that are still to be skipped
}

const (
	lengthSize = 4
	headSize   = 16 // of a reply: number, zxid, error; of a handshake: version, timeout, session
	pingNumber = -2
	eventOf    = -1 // number of a message that answers nothing
	createCode = 1  // of a request that creates a node
	getData    = 4
	getList    = 12 // of children (getChildren2)
	setWatches = 101
	expired    = -112
	moved      = -118
)

func (w *wire) Write(b []byte) (int, error) {
	now := time.Now()
	path := ""
	w.mu.Lock()
	if w.hello.IsZero() {
		w.hello = now
	} else if len(b) >= 3*lengthSize { // go-zookeeper writes whole messages
		number := int32(binary.BigEndian.Uint32(b[lengthSize:]))
		w.sent[number] = append(w.sent[number], now)
		switch code := binary.BigEndian.Uint32(b[2*lengthSize:]); code {
		case createCode:
			path = pathIn(b)
			w.paths[number] = path
		case getData, getList:
			if b[len(b)-1] != 0 {
				w.watches[number] = watchOf{pathIn(b), code == getList}
			}
		case setWatches:
			w.rewatch()
		}
	}
	w.mu.Unlock()
	if path != "" {
		w.creating(path)
	}
	return w.Conn.Write(b)
}

// pathIn is the path in a request about one node: length, number, code, length of the path, path.
func pathIn(b []byte) string {
	const at = 4 * lengthSize
	return string(b[at : at+binary.BigEndian.Uint32(b[3*lengthSize:])])
}

func (w *wire) Read(b []byte) (int, error) {
	n, err := w.Conn.Read(b)
	w.mu.Lock()
	defer w.mu.Unlock()
	for data := b[:n]; len(data) > 0; {
		data = w.feed(data)
	}
	return n, err
}

// feed reads from data up to the end of a head or of a message, and returns the rest. w.mu is held, but not while began
// and answered are called: a program may learn of it, and send a request.
func (w *wire) feed(data []byte) []byte {
	if w.rest > 0 {
		n := min(w.rest, len(data))
		w.rest -= n
		if w.rest == 0 && w.watch != nil {
			w.watched(*w.watch)
			w.watch = nil
		}
		return data[n:]
	}
	n := min(lengthSize+headSize-len(w.head), len(data))
	w.head, data = append(w.head, data[:n]...), data[n:]
	if len(w.head) == lengthSize+headSize {
		w.rest = int(binary.BigEndian.Uint32(w.head)) - headSize // replies are never shorter
		w.take(w.head[lengthSize:])
		w.head = w.head[:0]
	}
	return data
}

// take takes the head of a message. w.mu is held.
func (w *wire) take(head []byte) {
	first, second := int32(binary.BigEndian.Uint32(head)), binary.BigEndian.Uint32(head[4:])
	if !w.opened {
		w.opened = true
		if id := int64(binary.BigEndian.Uint64(head[8:])); id != 0 {
			sent := w.hello
			w.mu.Unlock()
			if !w.began(sent, id, time.Duration(second)*time.Millisecond) {
				w.rewatch()
			}
			w.mu.Lock()
		}
		return
	}
	zxid, code := int64(binary.BigEndian.Uint64(head[4:])), int32(binary.BigEndian.Uint32(head[12:]))
	if first >= 0 && zxid > 0 && w.rewatched.Err() == nil {
		defer w.awaitWatches()
	}
	list := w.sent[first]
	if first == eventOf || len(list) == 0 || code == expired || code == moved {
		return
	}
	if len(list) == 1 {
		delete(w.sent, first)
	} else {
		w.sent[first] = list[1:]
	}
	w.mu.Unlock()
	w.answered(list[0], first == pingNumber)
	w.mu.Lock()
	if watch, ok := w.watches[first]; ok {
		delete(w.watches, first)
		if code == 0 {
			w.watch = &watch
		}
	}
	if path, ok := w.paths[first]; ok {
		delete(w.paths, first)
		if code == 0 {
			w.created(path, zxid)
		}
	}
}

// awaitWatches waits until the watches are sent. w.mu is held, but not meanwhile.
func (w *wire) awaitWatches() {
	w.mu.Unlock()
	defer w.mu.Lock()
	limit := time.NewTimer(w.limit)
	defer limit.Stop()
	select {
	case <-w.rewatched.Done():
	case <-limit.C:
		w.rewatch()
	}
}

// Close also ends a Read that waits for the watches to be sent.
func (w *wire) Close() error {
	w.rewatch()
	return w.Conn.Close()
}

// SetReadDeadline bounds the handshake: go-zookeeper would wait for several session timeouts for a server that accepts
// a connection and hangs.
func (w *wire) SetReadDeadline(t time.Time) error {
	w.mu.Lock()
	limit := time.Time{}
	if !w.opened && !t.IsZero() {
		limit = time.Now().Add(w.limit)
	}
	w.mu.Unlock()
	if !limit.IsZero() && limit.Before(t) {
		t = limit
	}
	return w.Conn.SetReadDeadline(t)
}
