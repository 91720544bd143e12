package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSuggestStream: the suggestion is made for files above the limit that a stream can judge, and in one line.
func TestSuggestStream(t *testing.T) {
	text := filepath.Join(t.TempDir(), "h")
	if err := os.WriteFile(text, []byte("clients 3\nclient 0 acquire k 1-2 ok\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	edn := "testdata/histories/two-holders.edn"
	info, err := os.Stat(edn)
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		path, format string
		properties   []string
		limit        int64
		lines        int
	}{
		{edn, "auto", nil, info.Size() - 1, 1},
		{edn, "auto", []string{"exclusion"}, info.Size() - 1, 1},
		{edn, "edn", nil, info.Size() - 1, 1},
		{edn, "auto", nil, info.Size(), 0},
		{edn, "auto", []string{"exclusion", "linearizable"}, 0, 0},
		{edn, "text", nil, 0, 0},
		{text, "auto", nil, 0, 0},
		{"-", "auto", nil, 0, 0},
		{"testdata/missing", "auto", nil, 0, 0},
		{os.DevNull, "auto", nil, -1, 0},
	}
	for _, test := range tests {
		var o checkOptions
		o.format, o.properties = test.format, test.properties
		var errs bytes.Buffer
		suggestStream(streams{err: &errs}, test.path, o, test.limit)
		lines, says := strings.Count(errs.String(), "\n"), strings.Contains(errs.String(), "--stream does not, but")
		if lines != test.lines || says != (lines > 0) {
			t.Errorf("%+v: %q", test, &errs)
		}
	}
}

// TestCheckSuggestsStream judges a sparse file, of which only the first line is read.
func TestCheckSuggestsStream(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.jsonl")
	if err := os.WriteFile(path, []byte("{\"index\":\"x\"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for size, want := range map[int64]bool{largeHistory: false, largeHistory + 1: true} {
		if err := os.Truncate(path, size); err != nil {
			t.Fatal(err)
		}
		code, _, errs := chaos("check", "--format", "jsonl", path)
		if code != exitUsage || strings.Contains(errs, "--stream does not") != want {
			t.Errorf("%d bytes: exit %d, %s", size, code, errs)
		}
	}
}
