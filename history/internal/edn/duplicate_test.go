package edn

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// TestTorn: if another event starts inside a form, only that form is lost, however the reader
// splits the text.
func TestTorn(t *testing.T) {
	tests := []struct {
		name, text string
		want       string // forms, and ! for a torn one
	}{
		{"a map without an end", "{:type 1}\n{:type 2 :value\n{:type 3}\n", "{:type 1} ! {:type 3}"},
		{"inside a vector", "{:type 2 :value [1 {:a \n{:index 3}", "! {:index 3}"},
		{"tagged", "#jepsen.history.Op{:f 1\n#jepsen.history.Op{:f 2}", "! #jepsen.history.Op {:f 2}"},
		{"in one vector", "[{:type 2 :value\n{:type 3}\n{:type 4}]", "! {:type 3} {:type 4}"},
		{"a map on a line of its own", "{:type 2 :value\n{:a 3}}\n", "{:type 2 :value {:a 3}}"},
		{"indented", "{:type 2 :value\n {:type 3}}\n", "{:type 2 :value {:type 3}}"},
		{"two torn", "{:type 1 :v\n{:type 2 :v\n{:type 3}", "! ! {:type 3}"},
	}
	for _, test := range tests {
		for _, r := range []io.Reader{strings.NewReader(test.text), iotest.OneByteReader(strings.NewReader(test.text))} {
			var got []string
			forms := NewReader(r)
			for {
				v, err := forms.Next()
				if errors.Is(err, ErrTorn) {
					got = append(got, "!")
					continue
				}
				if err != nil {
					if !errors.Is(err, io.EOF) {
						t.Errorf("%s: %v", test.name, err)
					}
					break
				}
				got = append(got, v.String())
			}
			if text := strings.Join(got, " "); text != test.want {
				t.Errorf("%s: got %s, want %s", test.name, text, test.want)
			}
		}
	}
}

func TestDuplicate(t *testing.T) {
	many := "{"
	for i := range 40 {
		many += " :k" + strings.Repeat("x", i) + " 1"
	}
	tests := []struct{ text, want string }{
		{"{:a 1 :b 2}", ""}, {"{:a 1 :a 2}", "a"}, {`{:a 1 "a" 2}`, "a"}, {"{:v {:a 1 :b 1 :a 2}}", "a"},
		{"{:a {:b 1} :c {:b 1}}", ""}, {"{1 1 1 2}", ""}, {many + "}", ""}, {many + " :kxx 2}", "kxx"},
	}
	for _, test := range tests {
		r := NewReader(strings.NewReader(test.text + " {:x 1}"))
		if _, err := r.Next(); err != nil || r.Duplicate() != test.want {
			t.Errorf("%s: got %q, want %q (%v)", test.text, r.Duplicate(), test.want, err)
		}
		if _, err := r.Next(); err != nil || r.Duplicate() != "" {
			t.Errorf("%s: the next form has duplicate %q (%v)", test.text, r.Duplicate(), err)
		}
	}
}
