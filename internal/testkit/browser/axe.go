package browser

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"fmt"
	"io"
	"strings"
	"testing"
)

// axe is axe-core 4.14.1 (Deque Systems, MPL-2.0; unmodified, from npm), which only tests use.
//
//go:embed axe.min.js.gz
var axe []byte

// Violation is a report of axe-core: a part of a page that some people cannot use.
type Violation struct {
	ID    string `json:"id"`
	Help  string `json:"help"`
	Nodes []struct {
		HTML string `json:"html"`
	} `json:"nodes"`
}

func (v Violation) String() string {
	var where []string
	for _, n := range v.Nodes[:min(len(v.Nodes), 3)] {
		where = append(where, n.HTML)
	}
	return fmt.Sprintf("%s: %s: %s", v.ID, v.Help, strings.Join(where, "; "))
}

// Violations are what axe-core finds in the open page.
func (d *Devtools) Violations(t *testing.T) (all []Violation) {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(axe))
	if err != nil {
		t.Fatal(err)
	}
	script, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	d.Run(t, string(script)+`; return (await axe.run()).violations`, &all)
	return all
}
