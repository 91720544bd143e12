package reports

import (
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/internal/testkit/race"
)

// TestAccessibility: axe-core 4.14.1 (Deque Systems, MPL-2.0; unmodified, from npm) finds nothing on the pages of
// five runs, light, dark and narrow, in a browser. The short form looks at three pages, each in one of these ways.
func TestAccessibility(t *testing.T) {
	axe := readGzip(t, "testdata/axe.min.js.gz")
	d := startDevtools(t)
	bad := axeFinds(t, d, `<html lang="en"><title>x</title><body><main><h1>x</h1><img src="x"></main></body></html>`, axe,
		pageOptions{})
	if len(bad) != 1 || bad[0].ID != "image-alt" {
		t.Fatalf("axe-core found %+v in an image without text, want image-alt", bad)
	}
	for i, s := range allRuns() {
		page := render(t, s.load(t), "html")
		for j, o := range []pageOptions{{}, {dark: true}, {width: 390}} {
			if race.Short() && i != j {
				continue
			}
			t.Run(fmt.Sprintf("%s %+v", s.m.Scenario, o), func(t *testing.T) {
				for _, v := range axeFinds(t, d, page, axe, o) {
					t.Errorf("%s: %s: %s", v.ID, v.Help, strings.Join(v.where(), "; "))
				}
			})
		}
	}
}

func readGzip(t *testing.T, path string) string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// axeViolation is a report of axe-core.
type axeViolation struct {
	ID    string `json:"id"`
	Help  string `json:"help"`
	Nodes []struct {
		HTML string `json:"html"`
	} `json:"nodes"`
}

func (v axeViolation) where() []string {
	var all []string
	for _, n := range v.Nodes[:min(len(v.Nodes), 3)] {
		all = append(all, n.HTML)
	}
	return all
}

// axeFinds runs axe-core in a page, after its script has drawn the picture.
func axeFinds(t *testing.T, d *devtools, page, axe string, o pageOptions) []axeViolation {
	t.Helper()
	var all []axeViolation
	d.open(t, page, o)
	d.run(t, axe+`;
		if ($('[data-do=forth]')) { $('[data-do=forth]').click(); await frame(); }
		return (await axe.run()).violations`, &all)
	return all
}
