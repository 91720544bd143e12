// Package serve shows the pages of runs, suites and nights on loopback: the files of one directory, and the progress of
// a suite that runs in it. It changes nothing.
//
// Read [Handler] first.
package serve

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path"
	"strings"

	"github.com/lockchaos/lockchaos/internal/suite"
)

// policy lets a page use what is in it and on this server, and nothing else: reports have inline scripts and styles.
const policy = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src 'self' data:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// refresh is after how many seconds a browser asks again for the page of a suite that is running.
const refresh = "2"

// Handler serves the files below root, which no path and no symbolic link can leave. It answers only GET and HEAD, and
// only requests for a loopback host name: a page elsewhere whose name resolves to this machine gets nothing (DNS
// rebinding).
func Handler(root *os.Root) http.Handler {
	files := http.FileServerFS(served{root.FS()})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		switch {
		case !loopback(r.Host):
			http.Error(w, "this server is for loopback host names only", http.StatusForbidden)
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			h.Set("Allow", "GET, HEAD")
			http.Error(w, "only GET and HEAD", http.StatusMethodNotAllowed)
		case !live(root, w, r):
			files.ServeHTTP(w, r)
		}
	})
}

// served is a file system in which a file that cannot be opened, as a symbolic link that leads out of the root, is not
// found. The file server of net/http replies 500 to it otherwise.
type served struct{ fs.FS }

// Open implements [fs.FS].
func (s served) Open(name string) (fs.File, error) {
	f, err := s.FS.Open(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return f, err
}

// live serves the page of a suite that is running, if r asks for the page of its directory.
func live(root *os.Root, w http.ResponseWriter, r *http.Request) bool {
	dir, isDir := strings.CutSuffix(r.URL.Path, "/")
	if !isDir {
		return false
	}
	name := strings.TrimPrefix(path.Clean("/"+dir), "/")
	if name == "" {
		name = "."
	}
	below, err := fs.Sub(root.FS(), name)
	if err != nil {
		return false
	}
	progress, err := suite.ReadProgress(below)
	if err != nil {
		return false
	}
	var page bytes.Buffer
	if err := progress.Page(&page); err != nil {
		http.Error(w, "the page cannot be made", http.StatusInternalServerError)
		return true
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Refresh", refresh)
	_, _ = w.Write(page.Bytes()) // an error means that the browser has gone
	return true
}

// loopback reports whether a Host header names this machine.
func loopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.Trim(host, "[]")
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Listen opens a listener at host:port, which must be on loopback.
func Listen(addr string) (net.Listener, error) {
	if !loopback(addr) {
		return nil, fmt.Errorf("%s: %w", addr, ErrNotLoopback)
	}
	return net.Listen("tcp", addr)
}

// ErrNotLoopback refuses an address that other machines can reach: run directories are not meant for them.
var ErrNotLoopback = errors.New("not a loopback address: use 127.0.0.1:PORT, and a tunnel from other machines")
