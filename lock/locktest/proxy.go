package locktest

import (
	"bytes"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Proxy stands between a client and a server and loses answers: the request was
// executed, and its sender never hears of it. Several goroutines may use it.
type Proxy struct {
	Addr  string        // where clients connect to
	Lost  chan struct{} // gets an element for each answer that was lost or held
	delay atomic.Int64
	done  chan struct{}

	mu    sync.Mutex
	word  []byte // in the requests that are meant
	lose  int
	hold  bool
	conns map[net.Conn]bool
}

// StartProxy starts a proxy to target, which ends with the test.
func StartProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{
		Addr: l.Addr().String(), Lost: make(chan struct{}, 10000),
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
		p.Cut()
		wg.Wait()
	})
	return p
}

// Lose loses the answers to the next n requests that contain word (commands are
// in lower case on the wire), and their connections with them.
func (p *Proxy) Lose(n int, word string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lose, p.hold, p.word = n, false, []byte(word)
}

// Hold keeps back for ever every answer to a request that contains word; the
// connection stays. Lose(0, "") ends it for requests to come.
func (p *Proxy) Hold(word string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lose, p.hold, p.word = 0, true, []byte(word)
}

// Delay makes every answer from now on come later by d.
func (p *Proxy) Delay(d time.Duration) { p.delay.Store(int64(d)) }

// Cut closes every connection; new ones may be made.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.Close()
	}
}

// open is how many connections there are.
func (p *Proxy) open() int {
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
	case <-p.done: // the end has closed what it knew of
		p.Cut()
	default:
	}
	var last atomic.Pointer[[]byte] // the last request
	wg.Go(func() {
		p.copy(out, in, func(b []byte) bool {
			seen := bytes.Clone(b)
			last.Store(&seen)
			return true
		})
	})
	p.copy(in, out, func(b []byte) bool { return p.passes(last.Load(), b) })
}

// copy hands on what comes from src, as long as may agrees.
func (p *Proxy) copy(dst, src net.Conn, may func([]byte) bool) {
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
		if err != nil || !may(buf[:n]) {
			return
		}
		if _, err := dst.Write(buf[:n]); err != nil {
			return
		}
	}
}

// passes decides about an answer; no closes the connection.
func (p *Proxy) passes(request *[]byte, answer []byte) bool {
	if d := time.Duration(p.delay.Load()); d > 0 {
		select {
		case <-time.After(d):
		case <-p.done:
			return false
		}
	}
	if request == nil || bytes.HasPrefix(answer, []byte("-NOSCRIPT")) {
		return true
	}
	p.mu.Lock()
	hit := len(p.word) > 0 && bytes.Contains(*request, p.word)
	hold := hit && p.hold
	lose := hit && p.lose > 0
	if lose {
		p.lose--
	}
	p.mu.Unlock()
	if !hold && !lose {
		return true
	}
	p.Lost <- struct{}{}
	if hold {
		<-p.done
	}
	return false
}
