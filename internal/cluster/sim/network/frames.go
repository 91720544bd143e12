package network

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/lockchaos/lockchaos/internal/cluster/jute"
	"github.com/lockchaos/lockchaos/internal/cluster/sim/znode"
)

// zkFrames puts the requests of a ZooKeeper client at one instant in order. go-zookeeper numbers and sends the requests
// of concurrent goroutines as Go runs them, and lists the watches that it sets again in the order of a Go map. So
// requests of one instant are sorted and numbered here, and the numbers in the replies changed back: the client sees
// one of the orders that it could have chosen.
type zkFrames struct {
	socket  *socket
	buf     []byte // written, up to the end of a message
	greeted bool   // the first message, which has no number, was sent
	answer  bool   // it was answered
	now     []zkFrame
	last    int32           // number of the last request
	numbers map[int32]int32 // of the client, by the number that was sent
}

// zkFrame is a request to be sent.
type zkFrame struct {
	op   znode.Op
	xid  int32
	body []byte // after the number
}

const xidSize = 4

// protected begins the name of a node of go-zookeeper's own Lock; after it comes a random number.
const (
	protected     = "_c_"
	protectedSize = 32
)

// rename replaces the names that go-zookeeper has drawn without a seed. A name that is known already came from a
// server.
func (f *zkFrames) rename(body []byte) {
	a := f.socket.actor
	eachProtected(body, func(name []byte) {
		own := string(name)
		if a.world.protected[own] {
			return
		}
		if a.protected == nil {
			a.protected = map[string]string{}
		}
		seeded := a.protected[own]
		if seeded == "" {
			n := uint64(len(a.protected) / 2) //nolint:mnd // both ways
			rng := a.world.Stream(NameHash(a.name), NameHash(protected), n)
			seeded = fmt.Sprintf("%016x%016x", rng.Uint64(), rng.Uint64())
			a.protected[own], a.protected[seeded] = seeded, own
			a.world.protected[seeded] = true
		}
		copy(name, seeded)
	})
}

// restore undoes rename.
func (f *zkFrames) restore(body []byte) {
	eachProtected(body, func(name []byte) {
		if own := f.socket.actor.protected[string(name)]; own != "" {
			copy(name, own)
		}
	})
}

func eachProtected(body []byte, do func(name []byte)) {
	for at := 0; ; {
		i := strings.Index(string(body[at:]), protected)
		at += i + len(protected)
		if i < 0 || at+protectedSize > len(body) {
			return
		}
		do(body[at : at+protectedSize])
	}
}

// write takes the bytes that the client has written.
func (f *zkFrames) write(b []byte) {
	f.buf = append(f.buf, b...)
	for {
		m, rest, ok := jute.Cut(f.buf)
		if !ok {
			return
		}
		f.buf = rest
		if !f.greeted {
			f.greeted = true
			f.socket.send(zkSegment(m.Frame()))
			continue
		}
		frame := zkFrame{xid: m.Int(), body: slices.Clone(m)}
		head := m
		frame.op = znode.Op(head.Int())
		if frame.op == znode.OpSetWatches {
			frame.body = sortWatches(frame.body)
		}
		if f.now = append(f.now, frame); len(f.now) == 1 {
			w := f.socket.actor.world
			w.at(w.Now(), f.socket.conn.Flows[Forward].rank(), call(f.flush))
		}
	}
}

func zkSegment(data []byte) Segment { return Segment{Data: data, Size: int64(len(data))} }

// flush sends the requests of this instant: watches that are set again first, the end of the session last. Once its
// session is closed, a select of go-zookeeper chooses whether the next connection sets the watches again; here it never
// does.
func (f *zkFrames) flush() {
	if slices.ContainsFunc(f.now, func(z zkFrame) bool { return z.op == znode.OpCloseSession }) {
		f.now = slices.DeleteFunc(f.now, func(z zkFrame) bool { return z.op == znode.OpSetWatches })
	}
	slices.SortStableFunc(f.now, func(a, b zkFrame) int {
		return cmp.Or(cmp.Compare(a.rank(), b.rank()), slices.Compare(a.body, b.body))
	})
	for _, frame := range f.now {
		f.rename(frame.body)
		number := frame.xid
		if number > 0 { // pings have none
			f.last++
			number = f.last
			f.numbers[number] = frame.xid
		}
		var m jute.Message
		m.AppendInt(number)
		(&unsent{f.socket, zkSegment(append(m, frame.body...).Frame())}).Fire()
	}
	f.now = nil
}

func (f zkFrame) rank() int {
	switch f.op {
	case znode.OpSetWatches:
		return 0
	case znode.OpCloseSession:
		return 2
	}
	return 1
}

// sortWatches sorts the paths in the body of a request to set watches.
func sortWatches(body []byte) []byte {
	in := jute.Message(body)
	var out jute.Message
	out.AppendInt(in.Int())
	out.AppendLong(in.Long())
	for range 3 { // watches of data, of existence and of children
		paths := make([]string, 0, max(in.Int(), 0))
		for range cap(paths) {
			paths = append(paths, in.Text())
		}
		slices.Sort(paths)
		out.AppendInt(int32(len(paths)))
		for _, path := range paths {
			out.AppendString(path)
		}
	}
	return append(out, in...)
}

// read changes the number in a message of the server back. Each segment is one message.
func (f *zkFrames) read(data []byte) {
	if !f.answer {
		f.answer = true
		return
	}
	f.restore(data)
	m := jute.Message(data)
	m.Int() // length
	number := m.Int()
	if own, ok := f.numbers[number]; ok {
		binary.BigEndian.PutUint32(data[xidSize:], uint32(own))
		delete(f.numbers, number)
	}
}
