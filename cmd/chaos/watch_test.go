package main

import (
	"bytes"
	"io"
	"testing"
	"time"
)

func TestWatch(t *testing.T) {
	const size = 100_000_000
	tests := []struct {
		name  string
		width int
		size  int64
		every time.Duration
		want  string
	}{
		{"a bar", 60, size, 0, "\rreading: 25 of 100 MB [########                           ]\rreading: 50 of 100 MB " +
			"[#################                  ]\r\x1b[K"},
		{"a narrow terminal", 10, size, 0, "\rreading: 25 of 100 MB []\rreading: 50 of 100 MB []\r\x1b[K"},
		{"a log", 0, size, 0, "reading: 25 of 100 MB\nreading: 50 of 100 MB\n"},
		{"not yet time", 60, size, time.Hour, ""},
		{"a short file", 60, longFile - 1, 0, ""},
		{"not a file", 60, 0, 0, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var out bytes.Buffer
			w := &watched{r: &endless{}, out: &out, width: test.width, size: test.size, every: test.every}
			w.next = time.Now().Add(test.every)
			for range 2 {
				if _, err := io.ReadFull(w, make([]byte, size/4)); err != nil {
					t.Fatal(err)
				}
			}
			w.end()
			if got := out.String(); got != test.want {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
		})
	}
}

// endless gives as much as is asked for.
type endless struct{}

func (*endless) Read(b []byte) (int, error) { return len(b), nil }
