package locktest

import (
	"bytes"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Proxy is between a client and a server and drops replies: the server has executed the request, but the client
// does not learn the result. Its methods may be called concurrently.
type Proxy struct {
	Addr    string        // where clients connect to
	Dropped chan struct{} // gets an element for each reply that was dropped or held, and each request that was dropped
	delay   atomic.Int64
	sent    atomic.Int64
	silence atomic.Int64 // how often Silence was called
	done    chan struct{}

	mu      sync.Mutex
	resumed chan struct{} // replies are paused until it is closed; nil: they are not paused
	words   []string      // in the requests whose replies are affected
	drop    int           // replies still to drop
	hold    bool
	refused string // in the requests that are dropped
	conns   map[net.Conn]bool
}

// StartProxy starts a proxy to target, which ends with the test.
func StartProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{
		Addr: l.Addr().String(), Dropped: make(chan struct{}, 10000),
		done: make(chan struct{}), conns: map[net.Conn]bool{},
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { p.serve(in, target, &wg) })
		}
	})
	t.Cleanup(func() {
		close(p.done)
		l.Close()
		p.CutConnections()
		wg.Wait()
	})
	return p
}

// DropReplies drops the replies to the next n requests that contain one of the words (commands are in lower case on
// the wire), and closes their connections. 0 ends HoldReplies as well.
func (p *Proxy) DropReplies(n int, words ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop, p.hold, p.words = n, false, words
}

// HoldReplies holds every reply to a request that contains one of the words forever; the connection stays open.
// DropReplies(0) ends it for later requests.
func (p *Proxy) HoldReplies(words ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop, p.hold, p.words = 0, true, words
}

// DropRequests drops every request that contains word, and closes its connection. An empty word ends it.
func (p *Proxy) DropRequests(word string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refused = word
}

// PauseReplies keeps all replies back from now on.
func (p *Proxy) PauseReplies() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.resumed == nil {
		p.resumed = make(chan struct{})
	}
}

// ResumeReplies delivers the replies that PauseReplies has kept back, and later ones.
func (p *Proxy) ResumeReplies() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.resumed != nil {
		close(p.resumed)
		p.resumed = nil
	}
}

// Delay delays every reply from now on by d.
func (p *Proxy) Delay(d time.Duration) { p.delay.Store(int64(d)) }

// CutConnections closes every connection; new ones may be opened.
func (p *Proxy) CutConnections() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.Close()
	}
}

// Silence makes the existing connections lose all bytes, as when a firewall forgets them. New ones work.
func (p *Proxy) Silence() { p.silence.Add(1) }

// Sent is the number of bytes that clients have sent.
func (p *Proxy) Sent() int64 { return p.sent.Load() }

// Conns is the number of open connections.
func (p *Proxy) Conns() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.conns) / 2
}

func (p *Proxy) serve(in net.Conn, target string, wg *sync.WaitGroup) {
	out, err := net.Dial("tcp", target)
	if err != nil {
		in.Close()
		return
	}
	p.mu.Lock()
	p.conns[in], p.conns[out] = true, true
	p.mu.Unlock()
	select {
	case <-p.done: // the cleanup has missed this one
		p.CutConnections()
	default:
	}
	began := p.silence.Load()
	var last atomic.Pointer[[]byte] // the last request
	wg.Go(func() {
		p.pipe(out, in, began, func(b []byte) bool {
			p.sent.Add(int64(len(b)))
			seen := bytes.Clone(b)
			last.Store(&seen)
			p.mu.Lock()
			defer p.mu.Unlock()
			if p.refused == "" || !bytes.Contains(b, []byte(p.refused)) {
				return true
			}
			p.Dropped <- struct{}{}
			return false
		})
	})
	p.pipe(in, out, began, func(b []byte) bool { return p.forward(last.Load(), b) })
}

// pipe forwards bytes from src while allow returns true. began is the value of silence when the connection began.
func (p *Proxy) pipe(dst, src net.Conn, began int64, allow func([]byte) bool) {
	defer func() {
		p.mu.Lock()
		delete(p.conns, dst)
		delete(p.conns, src)
		p.mu.Unlock()
		dst.Close()
		src.Close()
	}()
	buf := make([]byte, 64<<10)
	for {
		n, err := src.Read(buf)
		if p.silence.Load() != began && err == nil {
			continue
		}
		if err != nil || !allow(buf[:n]) {
			return
		}
		if _, err := dst.Write(buf[:n]); err != nil {
			return
		}
	}
}

// forward reports whether to forward a reply; false closes the connection.
func (p *Proxy) forward(request *[]byte, reply []byte) bool {
	if d := time.Duration(p.delay.Load()); d > 0 {
		select {
		case <-time.After(d):
		case <-p.done:
			return false
		}
	}
	p.mu.Lock()
	resumed := p.resumed
	p.mu.Unlock()
	if resumed != nil {
		select {
		case <-resumed:
		case <-p.done:
			return false
		}
	}
	if request == nil || bytes.HasPrefix(reply, []byte("-NOSCRIPT")) {
		return true
	}
	p.mu.Lock()
	hit := slices.ContainsFunc(p.words, func(word string) bool { return bytes.Contains(*request, []byte(word)) })
	hold := hit && p.hold
	drop := hit && p.drop > 0
	if drop {
		p.drop--
	}
	p.mu.Unlock()
	if !hold && !drop {
		return true
	}
	p.Dropped <- struct{}{}
	if hold {
		<-p.done
	}
	return false
}
