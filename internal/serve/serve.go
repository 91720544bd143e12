// Package serve shows the pages of runs, suites and nights on loopback: the files of one directory, a list of its runs,
// and the progress of a suite that runs in it. It changes nothing.
//
// Read [Handler] first.
package serve

import (
	"bytes"
	"cmp"
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

// policy lets a page use the styles and images that are in it and on this server, and the scripts of reports. Any other
// script does not run: a file below the root may come from elsewhere. forms is where forms may lead.
func policy(scripts []string, forms string) string {
	allowed := "'none'"
	if len(scripts) > 0 {
		allowed = "'" + strings.Join(scripts, "' '") + "'"
	}
	return "default-src 'none'; script-src " + allowed + "; style-src 'unsafe-inline'; img-src 'self' data:; " +
		"base-uri 'none'; form-action " + forms + "; frame-ancestors 'none'"
}

// refresh is after how many seconds a browser asks again for the page of a suite that is running.
const refresh = "2"

// contentType is the type of a file by its name alone: a file with an unknown extension is shown as text.
func contentType(name string) string {
	known := map[string]string{
		".html": "text/html; charset=utf-8", ".svg": "image/svg+xml", ".png": "image/png", ".json": "application/json",
	}
	return cmp.Or(known[path.Ext(name)], "text/plain; charset=utf-8")
}

// Handler serves the files below root, which no path and no symbolic link can leave. It answers only GET and HEAD, and
// only requests for a loopback host name: a page elsewhere whose name resolves to this machine gets nothing (DNS
// rebinding). Scripts are the hashes of scripts that may run, as in a Content-Security-Policy: sha256-….
func Handler(root *os.Root, scripts ...string) http.Handler {
	all := served{root}
	files := http.FileServerFS(all)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy(scripts, "'none'"))
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-store")
		switch {
		case !loopback(r.Host):
			http.Error(w, "this server is for loopback host names only", http.StatusForbidden)
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			h.Set("Allow", "GET, HEAD")
			http.Error(w, "only GET and HEAD", http.StatusMethodNotAllowed)
		case !live(all, w, r) && !listRuns(all, w, r):
			if !strings.HasSuffix(r.URL.Path, "/") { // else a list, or index.html, which have types of their own
				h.Set("Content-Type", contentType(r.URL.Path))
			}
			files.ServeHTTP(w, r)
		}
	})
}

// served is a file system of the files and directories below a root. In it, a symbolic link that leads out of the root
// is not found (the file server of net/http replies 500 to it otherwise), nor is a named pipe or a device, of which
// opening or reading may never end.
type served struct{ root *os.Root }

// Open implements [fs.FS].
func (s served) Open(name string) (fs.File, error) {
	none := &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	info, err := s.root.Stat(name)
	if err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return nil, none
	}
	var f fs.File
	if err == nil {
		f, err = s.root.FS().Open(name)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
		return nil, none
	}
	return f, err
}

// live serves the page of a suite that is running, if r asks for the page of its directory.
func live(files fs.FS, w http.ResponseWriter, r *http.Request) bool {
	name, isDir := directory(r)
	if !isDir {
		return false
	}
	below, err := fs.Sub(files, name)
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

// directory is the directory that r asks for, as a path below the root; false: it asks for a file.
func directory(r *http.Request) (name string, is bool) {
	dir, is := strings.CutSuffix(r.URL.Path, "/")
	return cmp.Or(strings.TrimPrefix(path.Clean("/"+dir), "/"), "."), is
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
