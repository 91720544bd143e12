package foreign

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// TestSize: a history of known size is the same as one of unknown size, and its list of operations is allocated once.
func TestSize(t *testing.T) {
	var text strings.Builder
	for i := range 150_000 {
		for n, typ := range []string{"invoke", "ok"} {
			fmt.Fprintf(&text, `{"index":%d,"time":%d,"type":"%s","process":1,"f":"acquire","key":"k","value":{"owner":"o"}}`+"\n",
				2*i+n, 2*i+n, typ)
		}
	}
	read := func(size int64) (spans any, room int) {
		h, _, err := Read(strings.NewReader(text.String()), "test", Options{Size: size})
		if err != nil {
			t.Fatal(err)
		}
		return h.Spans, cap(h.Spans) - len(h.Spans)
	}
	want, _ := read(0)
	for _, size := range []int64{int64(text.Len()), 1, int64(text.Len()) / 2} {
		got, room := read(size)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("size %d: other operations", size)
		}
		if size == int64(text.Len()) && room > 150_000/20 {
			t.Errorf("room for %d more operations than the 150,000 of the history", room)
		}
	}
}
