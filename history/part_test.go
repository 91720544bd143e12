package history_test

import (
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/history/foreign"
)

// TestPartsOfAnOperation: an operation on several keys is a line, and a span, for each of them.
func TestPartsOfAnOperation(t *testing.T) {
	const lines = `
{"index":0,"time":1,"type":"invoke","process":2,"f":"acquire","key":"a","value":{"owner":"x"}}
{"index":1,"time":1,"type":"invoke","process":2,"f":"acquire","key":"b","value":{"owner":"x","part":true}}
{"index":2,"time":5,"type":"ok","process":2,"f":"acquire","key":"a","value":{"owner":"x","token":7}}
{"index":3,"time":5,"type":"ok","process":2,"f":"acquire","key":"b","value":{"owner":"x"}}
`
	h, err := history.ReadAll(strings.NewReader(lines), "parts")
	if err != nil || len(h.Problems) > 0 {
		t.Fatal(err, h.Problems)
	}
	for i, key := range []string{"a", "b"} {
		s := h.Spans[i]
		if h.Keys[s.Key] != key || s.Part != (i == 1) || s.Outcome != history.OK || s.Call != 1 || s.Return != 5 {
			t.Errorf("span %d: %+v", i, s)
		}
	}
	if whole, err := foreign.ReadText(strings.NewReader(strings.Join([]string{
		"client 2 acquire a 1.0-1.1 ok owner=x", "client 2 acquire b 1.0-1.1 ok owner=x part",
		"client 1 arm start 2.0-2.1 ok count=3 token=9", "client 1 resize pool 3.0-3.1 ok limit=4",
	}, "\n")), "text"); err != nil || len(whole.Problems) > 0 || !whole.Spans[1].Part {
		t.Errorf("as a text: %v, %+v", err, whole)
	} else if arm, size := whole.Spans[2], whole.Spans[3]; arm.Asked != 3 || arm.Token != 9 || size.Asked != 4 {
		t.Errorf("arm %+v, resize %+v", arm, size)
	}
}
