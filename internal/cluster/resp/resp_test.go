package resp

import (
	"errors"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]any{
		"+OK\r\n":                           "OK",
		"-ERR no\r\n":                       Error("ERR no"),
		":-7\r\n":                           int64(-7),
		"$-1\r\n":                           nil,
		"*-1\r\n":                           nil,
		"$4\r\na\r\nb\r\n":                  "a\r\nb",
		"*0\r\n":                            []any(nil),
		"*3\r\n:1\r\n*1\r\n+a\r\n$-1\r\n":   []any{int64(1), []any{"a"}, nil},
		string(AppendStrings(nil, "a", "")): []any{"a", ""},
	} {
		got, rest, err := Parse([]byte(text + "rest"))
		if diff := cmp.Diff(want, got); diff != "" || err != nil || string(rest) != "rest" {
			t.Errorf("%q: %v, rest %q (-want +got):\n%s", text, err, rest, diff)
		}
		for i := range len(text) {
			if got, rest, err := Parse([]byte(text[:i])); !incomplete(err) || string(rest) != text[:i] {
				t.Errorf("%q: %v, rest %q, %v", text[:i], got, rest, err)
			}
		}
	}
}

func incomplete(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }

func TestInvalidReplies(t *testing.T) {
	for _, text := range []string{"\r\n", "x\r\n", ":x\r\n", "$x\r\n", "$-2\r\n", "*-2\r\n", "*9999999\r\n", ":\r\n", "$99999999\r\n"} {
		if got, _, err := Parse([]byte(text)); !errors.Is(err, ErrProtocol) {
			t.Errorf("%q is %v, %v", text, got, err)
		}
	}
}

// FuzzParse: any input is a reply, incomplete, or an error; the parsed reply does not depend on later bytes.
func FuzzParse(f *testing.F) {
	f.Add([]byte("*2\r\n$1\r\na\r\n:1\r\n"))
	f.Add([]byte("-ERR\r\n"))
	f.Fuzz(func(t *testing.T, p []byte) {
		reply, rest, err := Parse(p)
		if err != nil {
			return
		}
		again, none, err := Parse(p[:len(p)-len(rest)])
		if diff := cmp.Diff(reply, again); diff != "" || len(none) > 0 || err != nil {
			t.Errorf("%q: %v, %q left:\n%s", p, err, none, diff)
		}
	})
}
