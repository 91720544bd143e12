package examples

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/history"
)

// page is a page of the documentation.
func page(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../docs/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// fields are the names on the wire of t's fields, those of its parts included.
func fields(t reflect.Type) []string {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	var names []string
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" {
			continue
		}
		names = append(append(names, name), fields(f.Type)...)
	}
	return names
}

// TestPagesNameEveryField: a field that no page tells of cannot be used.
func TestPagesNameEveryField(t *testing.T) {
	for name, types := range map[string][]reflect.Type{
		"protocol.md": {reflect.TypeFor[client.Request](), reflect.TypeFor[client.Reply]()},
		"history.md":  {reflect.TypeFor[history.Event](), reflect.TypeFor[history.Sample]()},
	} {
		text := page(t, name)
		for _, typ := range types {
			found := fields(typ)
			if len(found) < 8 {
				t.Errorf("%v has only the fields %q", typ, found)
			}
			for _, field := range found {
				if !strings.Contains(text, "`"+field+"`") && !strings.Contains(text, "."+field+"`") {
					t.Errorf("%s does not tell of %s of %v", name, field, typ)
				}
			}
		}
	}
}

// TestPagesNameEveryWord: operations and codes of errors.
func TestPagesNameEveryWord(t *testing.T) {
	protocol, record := page(t, "protocol.md"), page(t, "history.md")
	for _, op := range []string{client.Init, history.Acquire, history.Try, history.Work, history.Renew, history.Release,
		client.Close, history.Lost, history.Renewed} {
		if !strings.Contains(protocol, "`"+op+"`") {
			t.Errorf("protocol.md does not tell of %s", op)
		}
	}
	for _, word := range []string{history.Acquire, history.Try, history.Work, history.Renew, history.Release,
		history.Touch, history.Lost, history.Renewed, history.Crash,
		"client-exited", "client-protocol", "client-timeout", "client-error",
		string(history.Injected), string(history.TookEffect), string(history.Healed), string(history.Noted)} {
		if !strings.Contains(record, "`"+word+"`") {
			t.Errorf("history.md does not tell of %s", word)
		}
	}
}

// TestExamplesInThePages: every JSON line in a page is one that is understood.
func TestExamplesInThePages(t *testing.T) {
	lines := 0
	for _, name := range []string{"protocol.md", "history.md"} {
		for line := range strings.Lines(page(t, name)) {
			line = strings.TrimSpace(line)
			mark, text, marked := strings.Cut(line, " ")
			var into any
			switch {
			case marked && mark == ">":
				into = &client.Request{}
			case marked && mark == "<":
				into = &client.Reply{}
			case strings.HasPrefix(line, `{"event"`):
				into, text = &client.Reply{}, line
			case strings.HasPrefix(line, `{"index"`):
				into, text = &history.Event{}, line
			case strings.HasPrefix(line, `{"time"`):
				into, text = &history.Sample{}, line
			default:
				continue
			}
			lines++
			d := json.NewDecoder(strings.NewReader(text))
			d.DisallowUnknownFields()
			if err := d.Decode(into); err != nil {
				t.Errorf("%s: %s: %v", name, text, err)
			}
		}
	}
	if lines < 15 {
		t.Errorf("found only %d lines of JSON", lines)
	}
}
