package lock

import (
	"bytes"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// proxy is between a client and a server, and loses replies.
type proxy struct {
	addr     string
	loseNext atomic.Int32           // so many replies to scripts are lost, and their connections with them
	hang     atomic.Bool            // replies to scripts are held back for ever
	delay    atomic.Int64           // nanoseconds that every reply is late
	swallow  atomic.Pointer[string] // requests that contain this never arrive, and lose their connection; nil: none
	lost     chan struct{}          // one element for each reply lost or held back
	done     chan struct{}

	mu    sync.Mutex
	conns []net.Conn
}

func startProxy(t *testing.T, target string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{addr: l.Addr().String(), lost: make(chan struct{}, 1000), done: make(chan struct{})}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", target)
			if err != nil {
				in.Close()
				continue
			}
			p.keep(in, out)
			var script atomic.Bool // the last request was about a lock
			wg.Go(func() { p.requests(in, out, &script) })
			wg.Go(func() { p.replies(in, out, &script) })
		}
	})
	t.Cleanup(func() {
		close(p.done)
		l.Close()
		p.cut()
		wg.Wait()
	})
	return p
}

// cut closes all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		c.Close()
	}
}

func (p *proxy) keep(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns = append(p.conns, conns...)
}

func (p *proxy) requests(in, out net.Conn, script *atomic.Bool) {
	defer out.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := in.Read(buf)
		if n > 0 {
			script.Store(bytes.Contains(buf[:n], []byte("eval")) || bytes.Contains(buf[:n], []byte("\r\nset\r\n")))
			if word := p.swallow.Load(); word != nil && bytes.Contains(buf[:n], []byte(*word)) {
				return
			}
			if _, err := out.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (p *proxy) replies(in, out net.Conn, script *atomic.Bool) {
	defer in.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := out.Read(buf)
		if err != nil {
			return
		}
		if d := time.Duration(p.delay.Load()); d > 0 {
			select {
			case <-time.After(d):
			case <-p.done:
				return
			}
		}
		if script.Load() && !bytes.HasPrefix(buf[:n], []byte("-NOSCRIPT")) {
			if p.hang.Load() {
				p.lost <- struct{}{}
				<-p.done
				return
			}
			if p.loseNext.Add(-1) >= 0 {
				p.lost <- struct{}{}
				return
			}
		}
		if _, err := io.Copy(in, bytes.NewReader(buf[:n])); err != nil {
			return
		}
	}
}
