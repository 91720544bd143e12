//go:build ignore

package main

import (
	"bytes"
	"log"
	"net"
	"sync"
	"sync/atomic"
)

// relay passes bytes to a server, or holds back the clients' bytes, or loses replies.
type relay struct {
	listener net.Listener
	mu       sync.Mutex
	change   sync.Cond
	accepted int
	held     int    // the first connections, which are held back
	losing   []byte // the next request that has these bytes gets no reply; nil: none
	lost     int    // replies
}

func newRelay(address string) *relay {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	r := &relay{listener: l}
	r.change.L = &r.mu
	go func() {
		for {
			down, err := l.Accept()
			if err != nil {
				return
			}
			up, err := net.Dial("tcp", address)
			if err != nil {
				log.Fatal(err)
			}
			r.mu.Lock()
			number := r.accepted
			r.accepted++
			r.mu.Unlock()
			ended := new(atomic.Bool)
			go r.replies(up, down, ended)
			go r.requests(up, down, number, ended)
		}
	}()
	return r
}

// requests copies from the client to the server. What has arrived is passed on even if the client is gone, as a network
// does.
func (r *relay) requests(up, down net.Conn, number int, ended *atomic.Bool) {
	defer up.Close()
	b := make([]byte, 16<<10)
	for {
		n, err := down.Read(b)
		r.mu.Lock()
		for number < r.held {
			r.change.Wait()
		}
		if r.losing != nil && bytes.Contains(b[:n], r.losing) {
			r.losing = nil
			r.lost++
			ended.Store(true)
		}
		r.mu.Unlock()
		if _, failed := up.Write(b[:n]); err != nil || failed != nil {
			return
		}
	}
}

// replies copies from the server to the client, until the connection has ended.
func (r *relay) replies(up, down net.Conn, ended *atomic.Bool) {
	defer down.Close()
	b := make([]byte, 16<<10)
	for {
		n, err := up.Read(b)
		if err != nil || ended.Load() {
			return
		}
		if _, err := down.Write(b[:n]); err != nil {
			return
		}
	}
}

// lose ends the connection of the next request that has text, in place of the reply to it.
func (r *relay) lose(text string) {
	r.mu.Lock()
	r.losing = []byte(text)
	r.mu.Unlock()
}

func (r *relay) losses() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lost
}

// hold holds back the bytes that the first n connections send.
func (r *relay) hold(n int) {
	r.mu.Lock()
	r.held = n
	r.mu.Unlock()
	r.change.Broadcast()
}

func (r *relay) pass() { r.hold(0) }

func (r *relay) connections() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.accepted
}
