package edn_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/lockchaos/lockchaos/history/internal/edn"
)

// all reads every form and returns them printed.
func all(r *edn.Reader) (forms []string, err error) {
	for {
		v, err := r.Next()
		if errors.Is(err, io.EOF) {
			return forms, nil
		}
		if err != nil {
			return forms, err
		}
		forms = append(forms, v.String())
	}
}

func TestForms(t *testing.T) {
	tests := []struct {
		name, text string
		want       []string
	}{
		{"nothing", " ,\n; only a comment", nil},
		{"a map per line", "{:a 1}\n{:b nil}\n", []string{"{:a 1}", "{:b nil}"}},
		{"a vector is opened", "[{:a 1}, {:b [2 (3)]}]", []string{"{:a 1}", "{:b [2 (3)]}"}},
		{"a list is opened, what follows is read", "({:a 1}) {:b 2}", []string{"{:a 1}", "{:b 2}"}},
		{"empty vector", "[]", nil},
		{"discard", "#_ {:a 1} {:b #_2 3} #_ #_ x y [#_z]", []string{"{:b 3}"}},
		{"numbers", "{1 -2 +3 4N 0x1f 1.5 2/3 5M 1e3 99999999999999999999 ##Inf ##-Inf}",
			[]string{"{1 -2 3 4 31 1.5 2/3 5M 1e3 99999999999999999999 ##Inf ##-Inf}"}},
		{"words", "{:a/b sym - .5a true false}", []string{"{:a/b sym - .5a true false}"}},
		{"strings", `{"a\n\"\u0041é" ""}`, []string{`{"a\n\"Aé" ""}`}},
		{"a string over two lines", "{\"a\nb\" 1}", []string{`{"a\nb" 1}`}},
		{"characters", `{\a \newline \u0041 \( \\ \,}`, []string{`{\a \newline \A \( \\ \,}`}},
		{"sets and tags", `#jepsen.history.Op{:value #{:n1 #inst "2020"}}`,
			[]string{`#jepsen.history.Op {:value #{:n1 #inst "2020"}}`}},
		{"objects", `{:e #object[java.lang.Object 0x1b "x"]}`, []string{`{:e #object [java.lang.Object 27 "x"]}`}},
		{"namespaced map", `#:a{:b 1}`, []string{`#:a {:b 1}`}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := all(edn.NewReader(iotest.OneByteReader(strings.NewReader(test.text))))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("forms (-want +got):\n%s", diff)
			}
		})
	}
}

func TestErrors(t *testing.T) {
	deep := strings.Repeat("[", 5000)
	tests := []struct{ name, text, want string }{
		{"torn map", "{:a 1}\n{:b", "line 2:4: input ends inside a form: unexpected EOF"},
		{"torn vector", "[{:a 1}", `line 1:8: input ends before ']': unexpected EOF`},
		{"wrong bracket", "{:a 1]", `line 1:6: unmatched ']'`},
		{"odd map", "{:a}", "line 1:4: map has a key without a value"},
		{"not a number", "{:a 1x}", `line 1:7: "1x" is not a number`},
		{"division by zero", "{:a 1/0}", `line 1:8: "1/0" is not a number`},
		{"bad escape", `{:a "\q"}`, `line 1:8: unknown escape \q in a string`},
		{"unpaired surrogate", `{:a "\ud800"}`, `line 1:12: \ud800 is an unpaired surrogate`},
		{"no UTF-8", "\n{:a \"\xff\"}", `line 2:8: the text before this position is not UTF-8`},
		{"regular expression", `{:a #"x"}`, `line 1:6: expected a tag after #, got '"'`},
		{"deep vectors", "{:a " + deep, "line 1:105: collections are nested more than 100 deep"},
		{"deep tags", "{:a " + strings.Repeat("#t ", 5000), "line 1:303: tags are nested more than 100 deep"},
		{"deep discards", "{:a " + strings.Repeat("#_", 5000), "line 1:204: tags are nested more than 100 deep"},
		{"endless form", `{:a "` + strings.Repeat("x", 17<<20), "line 1:16842753: form exceeds 16 MiB"},
		{"too many values", "{:a [" + strings.Repeat("1 ", 200_001), "line 1:400000: form has more than 200000 values"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := all(edn.NewReader(strings.NewReader(test.text)))
			var at *edn.SyntaxError
			if !errors.As(err, &at) || err.Error() != test.want {
				t.Errorf("got  %v\nwant %s", err, test.want)
			}
		})
	}
	broken := errors.New("bad sector")
	if _, err := all(edn.NewReader(iotest.ErrReader(broken))); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

func TestJSON(t *testing.T) {
	tests := []struct {
		name, text string
		want       []string
		err        string
	}{
		{"array", `[{"a":1}, {"b":[null,true,1.5e3]}]`, []string{`{"a" 1}`, `{"b" [nil true 1.5e3]}`}, ""},
		{"one after the other", "{\"a\":\n1}{\"b\":\"\\u00e9\\ud83d\\ude00\"}", []string{`{"a" 1}`, `{"b" "é😀"}`}, ""},
		{"no comma", `[{"a":1} {"b":2}]`, []string{`{"a" 1}`}, `line 1:10: expected ',', got '{'`},
		{"comma at the end", `{"a":1,}`, nil, `line 1:8: expected a value after the comma, got '}'`},
		{"no colon", `{"a" 1}`, nil, `line 1:6: expected ':', got '1'`},
		{"no quotation marks", `{a:1}`, nil, `line 1:2: expected the name of a field in quotation marks, got 'a'`},
		{"leading zero", `{"a":01}`, nil, `line 1:8: "01" is not a JSON value`},
		{"control character", "{\"a\":\"\t\"}", nil, `line 1:8: control character in a string`},
		{"comment", "; x", nil, `line 1:1: expected a value, got ';'`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := all(edn.NewJSON(strings.NewReader(test.text)))
			if err == nil && test.err != "" || err != nil && err.Error() != test.err {
				t.Errorf("got error %v, want %s", err, test.err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("forms (-want +got):\n%s", diff)
			}
		})
	}
}

func FuzzEDN(f *testing.F) {
	for _, seed := range []string{
		`{:type :ok, :f :acquire, :value {:fence 7}, :process 1} ; x`, "[#{1 2/3} (\\a \"b\\n\")]", `#a.b{:c #_d 5N}`,
		"##Inf {}", `#object[a 0x1 "b"] \newline -1.5M`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		first, err := all(edn.NewReader(bytes.NewReader(b)))
		if err != nil && err.Error() == "" {
			t.Fatal("an error without a text")
		}
		for _, form := range first {
			second, err := edn.Parse(form)
			if err != nil || second.String() != form {
				t.Fatalf("%q was printed and read as %q (%v)", form, second, err)
			}
		}
	})
}

// FuzzJSON compares the reader with encoding/json.
func FuzzJSON(f *testing.F) {
	for _, seed := range []string{
		`{"a":[1,-2.5e+3,"\u00e9"],"b":{}}`, `{"a":nul}`, `{"a" : [ ] , "b":"\/"}`, `[{"a":1},{"b":null}]`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		forms, err := all(edn.NewJSON(bytes.NewReader(b)))
		var list []json.RawMessage
		var whole json.RawMessage // keeps numbers of any size
		standard := json.Unmarshal(b, &list)
		if standard != nil {
			standard = json.Unmarshal(b, &whole)
			list = []json.RawMessage{nil}
		}
		if standard == nil && err != nil && !stricter(err) {
			t.Fatalf("encoding/json reads %q, but: %v", b, err)
		}
		if standard != nil && err == nil && len(forms) == 1 && bytes.IndexByte(b, '[') < 0 {
			t.Fatalf("%q was read as %q, but encoding/json says: %v", b, forms, standard)
		}
		if standard == nil && err == nil && len(forms) != len(list) {
			t.Fatalf("%q has %d forms, not %d", b, len(list), len(forms))
		}
	})
}

// stricter reports whether the reader rejected text that encoding/json repairs.
func stricter(err error) bool {
	text := err.Error()
	return strings.Contains(text, "UTF-8") || strings.Contains(text, "unpaired surrogate") ||
		strings.Contains(text, "more than") || strings.Contains(text, "exceeds")
}

func BenchmarkEDN(b *testing.B) {
	bench(b, `{:index 17, :time 3208502930, :type :ok, :process 3, :f :acquire, :value nil}`, edn.NewReader)
}

func BenchmarkJSON(b *testing.B) {
	bench(b, `{"type":"ok","f":"acquire","value":null,"process":3,"time":3208502930,"index":17}`, edn.NewJSON)
}

func bench(b *testing.B, line string, open func(io.Reader) *edn.Reader) {
	const n = 100_000
	text := strings.Repeat(line+"\n", n)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		r := open(strings.NewReader(text))
		forms := 0
		for _, err := r.Next(); err == nil; _, err = r.Next() {
			forms++
		}
		if forms != n {
			b.Fatalf("%d forms, want %d", forms, n)
		}
	}
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "events/s")
}
