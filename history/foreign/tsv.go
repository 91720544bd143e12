package foreign

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/history/internal/edn"
	"github.com/lockchaos/lockchaos/history/internal/input"
)

// tsvLine is a line of Jepsen's history.txt, cut at its tabs.
type tsvLine struct{ process, typ, f, value, err string }

// cutTSV parses an operation, also one behind a logger's prefix
// ("INFO  jepsen.util - 0	:invoke	:read	nil").
func cutTSV(line string) (tsvLine, bool) {
	parts := strings.SplitN(strings.TrimRight(line, "\r\n"), "\t", 5)
	if len(parts) < 3 {
		return tsvLine{}, false
	}
	words := strings.Fields(parts[0])
	if len(words) == 0 || !strings.HasPrefix(parts[1], ":") {
		return tsvLine{}, false
	}
	if err := new(history.Type).UnmarshalText([]byte(parts[1])); err != nil {
		return tsvLine{}, false
	}
	t := tsvLine{process: words[len(words)-1], typ: parts[1], f: parts[2]}
	if len(parts) > 3 {
		t.value = parts[3]
	}
	if len(parts) > 4 {
		t.err = parts[4]
	}
	return t, true
}

// form returns the event as a map, without an index and a time.
func (t tsvLine) form() (edn.Value, error) {
	word := func(s string) edn.Value { return edn.Value{Kind: edn.Keyword, Text: strings.TrimPrefix(s, ":")} }
	items := []edn.Value{word("type"), word(t.typ), word("process"), word(t.process), word("f"), word(t.f)}
	value, err := parseForm(t.value)
	if err != nil && t.process != ":nemesis" {
		return edn.Value{}, fmt.Errorf("value %.40q: %w", t.value, err)
	}
	if err != nil { // values of the nemesis are for people and not always EDN
		value = edn.Value{Kind: edn.String, Text: t.value}
	}
	if t.value != "" {
		items = append(items, word("value"), value)
	}
	if t.err != "" {
		value, err := parseForm(t.err)
		if err != nil {
			value = edn.Value{Kind: edn.String, Text: t.err}
		}
		items = append(items, word("error"), value)
	}
	return edn.Value{Kind: edn.Map, Items: items}, nil
}

// parseForm is edn.Parse without the position in errors.
func parseForm(text string) (edn.Value, error) {
	if text == "" {
		return edn.Value{}, nil
	}
	v, err := edn.Parse(text)
	if syntax, ok := errors.AsType[*edn.SyntaxError](err); ok {
		return v, syntax.Err
	}
	return v, err
}

// readTSV reads history.txt, or a log with such lines in it.
func (in *reading) readTSV(r *bufio.Reader, visit visitor) error {
	l := input.NewLines(r)
	other := 0
	for {
		line, whole, err := l.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return in.lineError(l.N, 0, err)
		}
		if !utf8.Valid(line) {
			return in.lineError(l.N, 0, errors.New("line is not UTF-8"))
		}
		cut, ok := cutTSV(string(line))
		switch {
		case !ok && isLogLine(line):
			other++
			continue
		case !ok && !whole:
			in.Problems = append(in.Problems, tornLine(l.N, len(line)))
			continue
		case !ok:
			return in.lineError(l.N, 0, fmt.Errorf("expected PROCESS, :TYPE, :OPERATION and VALUE, separated by tabs, "+
				"got %.40q", line))
		}
		form, err := cut.form()
		if err != nil && !whole {
			in.Problems = append(in.Problems, tornLine(l.N, len(line)))
			continue
		}
		if err != nil {
			return in.lineError(l.N, strings.Index(string(line), cut.f+"\t")+len(cut.f)+2, err)
		}
		e, err := in.mapper.event(form, l.N)
		if err != nil {
			return in.lineError(l.N, 0, err)
		}
		if err := visit(e, l.N); err != nil {
			return err
		}
	}
	if other > 0 {
		in.problem(0, "ignored lines of the log that are not operations: %d", other)
	}
	return nil
}

// isLogLine reports whether a logger wrote the line.
func isLogLine(line []byte) bool {
	head := string(line[:min(len(line), 80)])
	for _, level := range []string{"INFO ", "WARN ", "ERROR ", "DEBUG ", "INFO\t", "WARN\t", "ERROR\t", "\tat "} {
		if strings.Contains(head, level) {
			return true
		}
	}
	return false
}

func tornLine(line, bytes int) history.Problem {
	return history.Problem{Index: -1, Line: line, Text: input.Torn(bytes)}
}
