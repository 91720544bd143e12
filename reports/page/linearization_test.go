package page

import (
	"bytes"
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
)

// TestScripts: the script of a page of porcupine does not depend on its data, and has one of the hashes.
func TestScripts(t *testing.T) {
	hashes, err := Scripts()
	if err != nil || len(hashes) != 2 || hashes[0] == hashes[1] {
		t.Fatalf("%v, %v", hashes, err)
	}
	h, err := history.ReadAll(strings.NewReader(`{"index":0,"time":1,"type":"invoke","process":3,"f":"acquire","key":"a",`+
		`"value":{"owner":"</script><script>\n\n      render(data)"}}
{"index":1,"time":5,"type":"ok","process":3,"f":"acquire","key":"a","value":{"owner":"</script><script>\n\n      render(data)"}}
`), "test")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := WriteLinearization(&b, h, checker.Judge(h, checker.Options{})); err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(b.String(), scriptBegins)
	script, after, _ := strings.Cut(rest, scriptEnds)
	if hashOf([]byte(script)) != hashes[1] || strings.Contains(after, "<script") {
		t.Errorf("another script, or more than one:\n%.300s\n…%s", script, after)
	}
	if n := strings.Count(b.String(), "<script"); n != 2 {
		t.Errorf("%d scripts, want the data and the script", n)
	}
}
