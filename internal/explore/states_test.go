package explore

import (
	"slices"
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/history"
)

func TestStates(t *testing.T) {
	const text = `{"index":0,"time":1,"type":"invoke","process":0,"f":"acquire","key":"k","value":{"owner":"a"}}
{"index":1,"time":2,"type":"ok","process":0,"f":"acquire","key":"k","value":{"owner":"a","valid_ns":5}}
{"index":2,"time":3,"type":"info","process":"nemesis","f":"kill","value":{"fault":{"id":1,"phase":"inject"}}}
{"index":3,"time":4,"type":"info","process":"nemesis","f":"kill","value":{"fault":{"id":1,"phase":"effect"}}}
{"index":4,"time":5,"type":"info","process":"nemesis","f":"promoted","value":{"fault":{"id":0,"phase":"note"}}}
{"index":5,"time":5,"type":"invoke","process":1,"f":"acquire","key":"k","value":{"owner":"b"}}
{"index":6,"time":6,"type":"ok","process":1,"f":"acquire","key":"k","value":{"owner":"b","valid_ns":50}}
{"index":7,"time":20,"type":"invoke","process":0,"f":"release","key":"k","value":{"owner":"a"}}
{"index":8,"time":21,"type":"fail","process":0,"f":"release","key":"k","value":{"owner":"a"},"error":"lost: it is lost"}
{"index":9,"time":22,"type":"info","process":1,"f":"lost","key":"k","value":{"owner":"b"}}
{"index":10,"time":23,"type":"fail","process":1,"f":"touch","key":"k","value":{"owner":"b","touch":{}}}
torn`
	want := []string{
		"a holder outlived its lease", "a loss was reported", "a release was refused",
		"a replica was promoted while the lock was held", "a stale write was refused",
		"granted during a fault", "kill took effect while the lock was held", "two holders at once",
	}
	s := NewStates()
	if got := s.Reached(); len(got) != 0 {
		t.Errorf("an empty history: %q", got)
	}
	_, err := history.Scan(strings.NewReader(text), "", func(e *history.Event, _ int) error {
		s.Add(e)
		return nil
	})
	if got := s.Reached(); err != nil || !slices.Equal(got, want) {
		t.Errorf("got  %q, error %v\nwant %q", got, err, want)
	}
}
