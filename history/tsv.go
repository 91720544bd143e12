package history

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/lockchaos/lockchaos/history/internal/edn"
)

// tsvLine is a line of Jepsen's history.txt, cut at its tabs.
type tsvLine struct{ process, typ, f, value, cause string }

// cutTSV finds an operation on a line, also behind what a logger puts first
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
	if _, err := parseType(parts[1]); err != nil {
		return tsvLine{}, false
	}
	t := tsvLine{process: words[len(words)-1], typ: parts[1], f: parts[2]}
	if len(parts) > 3 {
		t.value = parts[3]
	}
	if len(parts) > 4 {
		t.cause = parts[4]
	}
	return t, true
}

// form is the event as a map; there is neither an index nor a time.
func (t tsvLine) form() (edn.Value, error) {
	word := func(s string) edn.Value { return edn.Value{Kind: edn.Keyword, Text: strings.TrimPrefix(s, ":")} }
	items := []edn.Value{word("type"), word(t.typ), word("process"), word(t.process), word("f"), word(t.f)}
	value, err := oneForm(t.value)
	if err != nil && t.process != ":nemesis" {
		return edn.Value{}, fmt.Errorf("the value %.40q: %w", t.value, err)
	}
	if err != nil { // what a nemesis says is for people, and not always EDN
		value = edn.Value{Kind: edn.String, Text: t.value}
	}
	if t.value != "" {
		items = append(items, word("value"), value)
	}
	if t.cause != "" {
		cause, err := oneForm(t.cause)
		if err != nil {
			cause = edn.Value{Kind: edn.String, Text: t.cause}
		}
		items = append(items, word("error"), cause)
	}
	return edn.Value{Kind: edn.Map, Items: items}, nil
}

// oneForm reads a text that is a single form; vectors too.
func oneForm(text string) (edn.Value, error) {
	if text == "" {
		return edn.Value{}, nil
	}
	v, err := edn.Parse(text)
	var syntax *edn.SyntaxError
	if errors.As(err, &syntax) {
		return v, syntax.Err
	}
	return v, err
}

// readTSV reads history.txt, or a log with such lines in it.
func (s *source) readTSV(r *bufio.Reader, visit visitor) error {
	l := lines{r: r}
	other := 0
	for {
		line, whole, err := l.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return s.at(l.n, 0, err)
		}
		if !utf8.Valid(line) {
			return s.at(l.n, 0, errors.New("the line is not UTF-8"))
		}
		cut, ok := cutTSV(string(line))
		switch {
		case !ok && isLogLine(line):
			other++
			continue
		case !ok && !whole:
			s.torn(l.n, len(line))
			continue
		case !ok:
			return s.at(l.n, 0, fmt.Errorf("want PROCESS, :TYPE, :OPERATION and VALUE with tabs between, not %.40q", line))
		}
		form, err := cut.form()
		if err != nil && !whole {
			s.torn(l.n, len(line))
			continue
		}
		if err != nil {
			return s.at(l.n, strings.Index(string(line), cut.f+"\t")+len(cut.f)+2, err)
		}
		if err := s.visit(form, l.n, visit); err != nil {
			return err
		}
	}
	if other > 0 {
		s.note(fmt.Sprintf("%d lines of the log are no operations and were left out", other))
	}
	return nil
}

// isLogLine knows lines that a logger wrote.
func isLogLine(line []byte) bool {
	head := string(line[:min(len(line), 80)])
	for _, level := range []string{"INFO ", "WARN ", "ERROR ", "DEBUG ", "INFO\t", "WARN\t", "ERROR\t", "\tat "} {
		if strings.Contains(head, level) {
			return true
		}
	}
	return false
}
