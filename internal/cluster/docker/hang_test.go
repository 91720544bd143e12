package docker

import (
	"errors"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/internal/cluster"
)

// mute is an engine that says that it is there, and what comes of no container.
func mute(t *testing.T) (host string, asked <-chan string) {
	t.Helper()
	paths := make(chan string, 100)
	over := make(chan struct{})
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "engine.sock"))
	must(t, err)
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/_ping") {
			w.Header().Set("Api-Version", "1.44")
			_, _ = io.WriteString(w, "OK")
			return
		}
		paths <- r.URL.Path
		<-over
	})}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { close(over); _ = s.Close() })
	return "unix://" + l.Addr().String(), paths
}

// TestEngineThatHangs: an engine that stands still, unlike one that died, breaks no
// connection; who waits for a container's end must not wait for ever.
func TestEngineThatHangs(t *testing.T) {
	host, asked := mute(t)
	e, err := dial(t.Context(), host)
	must(t, err)
	defer e.Client.Close()
	g := &launcher{engine: e, failed: make(chan struct{}), closing: make(chan struct{})}
	b := &containerServer{launcher: g, id: "c0ffee", name: "n1", ended: make(chan struct{}), recorded: make(chan struct{})}
	go b.watch()
	select {
	case path := <-asked:
		if !strings.Contains(path, "/containers/c0ffee/wait") {
			t.Fatalf("the engine was asked %s", path)
		}
	case <-time.After(patience):
		t.Fatal("the engine was not asked for the end of the container")
	}
	g.mu.Lock()
	g.failure = cluster.ErrEnvironment
	g.mu.Unlock()
	close(g.failed)
	for what, done := range map[string]chan struct{}{"the end": b.ended, "that it is known": b.recorded} {
		select {
		case <-done:
		case <-time.After(patience):
			t.Fatalf("waited in vain for %s", what)
		}
	}
	if err := b.Wait(); !errors.Is(err, cluster.ErrEnvironment) {
		t.Errorf("it ended so: %v", err)
	}
	must(t, b.Kill())
}
