package cluster

import (
	"testing"
	"time"
)

func TestParseTime(t *testing.T) {
	at, err := ParseTime([]any{"1700000000", "250000"})
	if want := time.UnixMilli(1700000000250); err != nil || !at.Equal(want) {
		t.Errorf("%v, %v, want %v", at, err, want)
	}
	for _, bad := range []any{nil, "OK", []any{}, []any{"1"}, []any{"1", "x"}, []any{"x", "1"}, []any{"1", "2", "3"}} {
		if at, err := ParseTime(bad); err == nil {
			t.Errorf("%v is read as %v", bad, at)
		}
	}
}
