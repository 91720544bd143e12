package docker

import (
	"context"
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

// hangingEngine is an engine that replies to pings and to nothing else.
func hangingEngine(t *testing.T) (host string, requests <-chan string) {
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

// TestEngineThatHangs: an engine that hangs, unlike a dead one, does not close its connections; waiting for a
// container's exit must still return.
func TestEngineThatHangs(t *testing.T) {
	host, requests := hangingEngine(t)
	e, err := dial(t.Context(), host)
	must(t, err)
	defer e.Client.Close()
	l := &launcher{engine: e, open: t.Context()}
	l.alive, l.lose = context.WithCancelCause(t.Context())
	s := &containerServer{launcher: l, id: "c0ffee", name: "n1", exited: make(chan struct{}), recorded: make(chan struct{})}
	go s.watch()
	select {
	case path := <-requests:
		if !strings.Contains(path, "/containers/c0ffee/wait") {
			t.Fatalf("the engine got request %s", path)
		}
	case <-time.After(patience):
		t.Fatal("the engine got no request to wait for the container")
	}
	l.lose(cluster.ErrEnvironment)
	for what, done := range map[string]chan struct{}{"exited": s.exited, "recorded": s.recorded} {
		select {
		case <-done:
		case <-time.After(patience):
			t.Fatalf("%s was not closed", what)
		}
	}
	if err := s.Wait(); !errors.Is(err, cluster.ErrEnvironment) {
		t.Errorf("Wait = %v, want ErrEnvironment", err)
	}
	must(t, s.Kill())
}
