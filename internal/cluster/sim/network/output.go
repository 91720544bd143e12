package network

import (
	"strconv"
	"strings"
)

// Output buffers a server's output on a connection.
type Output struct {
	Conn  *Conn
	out   []byte
	dirty bool
	ended bool // closed by the server
}

// Add buffers p, or the end of the connection if it is nil, and reports whether nothing was buffered before.
func (o *Output) Add(p []byte) (first bool) {
	o.ended = o.ended || p == nil
	o.out = append(o.out, p...)
	first, o.dirty = !o.dirty, true
	return first
}

// Flush sends the buffered bytes after wait nanoseconds.
func (o *Output) Flush(wait int64) {
	o.dirty = false
	if len(o.out) > 0 {
		o.Conn.SendAfter(Back, Segment{Data: o.out, Size: int64(len(o.out))}, wait)
		o.out = nil
	}
	if o.ended && !o.Conn.Closed {
		o.Conn.Ends[1] = ClosedEnd{}
		o.Conn.Send(Back, Segment{Kind: Finished})
	}
}

// SplitAddr splits the address of a host.
func SplitAddr(addr string) (host string, port int) {
	host, text, _ := strings.Cut(addr, ":")
	port, _ = strconv.Atoi(text)
	return host, port
}
