package history_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/history/internal/edn"
)

const line0 = `{"index":0,"time":5,"type":"invoke","process":1,"f":"try","key":"k"}` + "\n"

func TestReadErrors(t *testing.T) {
	tests := []struct {
		name, text, want string
	}{
		{"not json", line0 + "hello\n" + line0, "x:2:1: invalid character 'h' looking for beginning of value"},
		{"cut in the middle", line0[:20] + "\n" + line0, "x:1:20: unexpected end of JSON input"},
		{"bad type", `{"type":"maybe","f":"a","process":1}` + "\n", `x:1: type "maybe": expected invoke, ok, fail or info`},
		{"no type", `{"f":"a","process":1}` + "\n", `x:1: event without "type"`},
		{"no f", "\n\n" + `{"type":"ok","process":1}` + "\n", `x:3: event without "f"`},
		{"bad process", `{"type":"ok","f":"a","process":-3}` + "\n",
			`x:1: process -3: expected an integer from 0 to 2147483647, or "nemesis"`},
		{"bad error", `{"type":"ok","f":"a","process":3,"error":[1]}` + "\n", `x:1: error: expected ["code","text"]`},
		{"two events on a line", strings.TrimSpace(line0) + line0, "x:1:69: invalid character '{' after top-level value"},
		{"leading zero", `{"index":01,"type":"ok","f":"a"}` + "\n",
			"x:1:11: invalid character '1' after object key:value pair"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := history.ReadAll(strings.NewReader(test.text), "x")
			var at *history.LineError
			if !errors.As(err, &at) || err.Error() != test.want {
				t.Errorf("got  %v\nwant %v", err, test.want)
			}
		})
	}
}

func TestReadTolerates(t *testing.T) {
	tests := []struct {
		name, text string
		problems   int
	}{
		{"as written", line0, 0},
		{"last line without end", strings.TrimSpace(line0), 0},
		{"torn last line", line0 + line0[:30], 1},
		{"windows line ends, empty lines, spaces", "\r\n  \n" + strings.Replace(line0, "\n", " \r\n", 1), 0},
		{"unknown fields", strings.Replace(line0, "{", `{"thread":{"a":[1]},"x":null,`, 1), 0},
		{"white space inside", strings.ReplaceAll(strings.ReplaceAll(line0, ":", " : "), ",", " , "), 0},
		{"no index", strings.Replace(line0, `"index":0,`, "", 1), 0},
		{"escapes", strings.Replace(line0, `"k"`, `"\u006b"`, 1), 0},
	}
	want, err := history.ReadAll(strings.NewReader(line0), "x")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := history.ReadAll(strings.NewReader(test.text), "x")
			if err != nil {
				t.Fatal(err)
			}
			if len(got.Problems) != test.problems {
				t.Errorf("problems: %v", got.Problems)
			}
			got.Problems = nil
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("history (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReadLongLineAndBrokenReader(t *testing.T) {
	long := strings.Replace(line0, `"k"`, `"`+strings.Repeat("k", 600<<10)+`"`, 1)
	h, err := history.ReadAll(strings.NewReader(long+line0), "x")
	if err != nil || len(h.Spans) != 2 || len(h.Keys[0]) != 600<<10 {
		t.Fatalf("a line of 600 kB: %v", err)
	}
	if _, err := history.ReadAll(strings.NewReader(strings.Repeat("x", 20<<20)), "x"); err == nil {
		t.Error("a line of 20 MB was accepted")
	}
	bad := errors.New("bad sector")
	_, err = history.ReadAll(iotest.ErrReader(bad), "x")
	if !errors.Is(err, bad) {
		t.Errorf("got %v", err)
	}
}

func TestReadSamples(t *testing.T) {
	text := `{"time":7,"sent":5,"node":"n1","up":true,"role":"master","keys":{"orders":{"owner":"a","ttl_ns":9}}}
{"time":8,"sent":8,"node":"n2","up":false}
{"time":9,"as`
	path := filepath.Join(t.TempDir(), "w")
	read := func(text string) ([]history.Sample, []history.Problem, error) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return history.ReadSamples(path)
	}
	got, problems, err := read(text)
	if err != nil || len(problems) != 1 {
		t.Fatal(err, problems)
	}
	keys := map[string]history.KeyState{"orders": {Owner: "a", TTL: 9}}
	want := []history.Sample{
		{Time: 7, Sent: 5, Node: "n1", Up: true, Role: "master", Keys: keys},
		{Time: 8, Sent: 8, Node: "n2"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("samples (-want +got):\n%s", diff)
	}
	for text, want := range map[string]string{
		"{}\n{]\n":                      ":2:2: ",
		`{"keys":{"\ud800":{}}}` + "\n": ":1:17: \\ud800 is an unpaired surrogate",
		"{\"node\":\"\xff\"}\n":         ":1:12: the text before this position is not UTF-8",
	} {
		if _, _, err = read(text); err == nil || !strings.HasPrefix(err.Error(), path+want) {
			t.Errorf("%q: got %v", text, err)
		}
	}
	if got, _, err := read(`{"keys":{"\ud83d\ude00":{}}}` + "\n"); err != nil || len(got[0].Keys) != 1 {
		t.Errorf("a pair of surrogates: got %+v, %v", got, err)
	}
}

// TestNamesStayDifferent: encoding/json makes one name of all unpaired surrogates, and of all invalid bytes. A pair of
// surrogates is a name.
func TestNamesStayDifferent(t *testing.T) {
	read := func(names ...string) (*history.History, error) {
		var b strings.Builder
		for i, name := range names {
			fmt.Fprintf(&b, `{"time":%d,"type":"invoke","process":%d,"f":"acquire","key":"%s"}`+"\n", i, i, name)
		}
		return history.ReadAll(strings.NewReader(b.String()), "FILE")
	}
	if h, err := read(`\ud83d\ude00`, `\ud83d\ude01`, "\U0001f600", "é"); err != nil || len(h.Keys) != 3 {
		t.Errorf("got %+v, %v", h, err)
	}
	for _, names := range [][]string{{`\ud800`, `\ud801`}, {`\udc00`, `\udc01`}, {"\xfe", "\xff"}} {
		var at *history.LineError
		if _, err := read(names...); !errors.As(err, &at) || at.Line != 1 || at.Column == 0 {
			t.Errorf("%q: got %v", names, err)
		}
	}
}

// first is the first event of a text; the error is not nil if there is none.
func first(text []byte) (e history.Event, err error) {
	enough := errors.New("one event is enough")
	_, err = history.Scan(bytes.NewReader(text), "text", func(read *history.Event, _ int) error {
		e = read.Clone()
		return enough
	})
	switch {
	case errors.Is(err, enough):
		return e, nil
	case err == nil:
		return e, errors.New("no event")
	}
	return e, err
}

// FuzzScan: the fast parser, encoding/json and the reader of format json agree about every line, events survive being
// written and read, and nothing panics.
func FuzzScan(f *testing.F) {
	f.Add([]byte(line0))
	f.Add([]byte(`{"type":"info","process":"nemesis","f":"kill","value":{"fault":{"id":1,"phase":"heal"}}}`))
	f.Add([]byte(`{"index":3,"type":"ok","process":0,"f":"touch","value":{"token":4,"touch":{"read":-1,"found":2}}}`))
	f.Add([]byte(`{"type":"fail","process":2,"f":"try","error":["held","by x"],"value":{"owner":"o","count":1}}`))
	f.Add([]byte(`{"type":"fail","process":2,"f":"try","error":["held","lock \"a\\b\" \\"],"value":{"owner":"\"","mode":"\\"}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := first(b)
		if err != nil {
			return
		}
		line, _, _ := bytes.Cut(bytes.TrimLeft(b, " \t\r\n"), []byte("\n"))
		var want struct {
			history.Event
			Index *int64 `json:"index"`
		}
		if err := json.Unmarshal(line, &want); err != nil {
			t.Fatalf("read %+v, but encoding/json fails: %v", got, err)
		}
		if _, err := edn.NewJSON(bytes.NewReader(line)).Next(); err != nil {
			t.Fatalf("read %+v, but format json refuses it: %v", got, err)
		}
		if want.Index != nil {
			want.Event.Index = *want.Index
		}
		if diff := cmp.Diff(want.Event, got); diff != "" {
			t.Fatalf("encoding/json and the fast parser (-want +got):\n%s", diff)
		}
		if second, err := first(got.AppendJSON(nil)); err != nil || !cmp.Equal(got, second) {
			t.Fatalf("written and read: %+v became %+v (%v)", got, second, err)
		}
		if _, err := history.ReadAll(bytes.NewReader(b), "fuzz"); err != nil && err.Error() == "" {
			t.Fatal("an error without a text")
		}
	})
}
