package history

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Format is a way in which a history is written down.
type Format string

// The formats. FormatAuto looks at the beginning of the text, not at the file's name.
const (
	FormatAuto  Format = "auto"
	FormatJSONL Format = "jsonl" // what a Recorder writes: one JSON object per line, in our own words
	FormatJSON  Format = "json"  // JSON objects in an array, or one after the other
	FormatEDN   Format = "edn"   // Jepsen's history.edn: one map per line, or a vector or list of maps
	FormatTSV   Format = "tsv"   // Jepsen's history.txt, or the same lines in a log: tabs, and no times
	FormatText  Format = "text"  // the notation of ReadNotation
)

// Formats is every format that can be asked for.
func Formats() []Format {
	return []Format{FormatAuto, FormatJSONL, FormatJSON, FormatEDN, FormatTSV, FormatText}
}

// ErrNotHistory is what a file is that is in no form that can be read.
var ErrNotHistory = errors.New("not a history that can be read")

// window is how far into a text the detection looks, in bytes.
const window = 64 << 10

// Detect says in which format the text in r is, and why; it consumes nothing.
// r should have a buffer of 64 KiB. A text in no format is [ErrNotHistory].
func Detect(r *bufio.Reader) (Format, string, error) {
	head, err := r.Peek(window)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
		return "", "", err
	}
	if err := refuse(head); err != nil {
		return "", "", err
	}
	head = bytes.TrimPrefix(head, []byte("\xef\xbb\xbf"))
	body := bytes.TrimLeft(head, " \t\r\n")
	if len(body) == 0 {
		return FormatJSONL, "there is nothing in it", nil
	}
	switch first := body[0]; {
	case first == '{':
		format, why := detectMaps(body)
		return format, why, nil
	case first == '[' || first == '(':
		format, why := detectVector(body)
		return format, why, nil
	case first == ';' || first == '#' && len(body) > 1 && body[1] != ' ' && body[1] != '\n':
		return FormatEDN, "it begins with a comment or tag of EDN", nil
	case notationBegins(body):
		return FormatText, "its first word is a comment, client, clients or nemesis", nil
	case hasTSVLine(head):
		return FormatTSV, "it has lines of a process, a type and an operation with tabs between", nil
	}
	return "", "", fmt.Errorf("%w: it begins with %q; give a history.jsonl, history.edn, history.txt or a JSON array "+
		"of events, or name its form with --format", ErrNotHistory, body[:min(len(body), 24)])
}

// refuse knows what is no text.
func refuse(head []byte) error {
	switch {
	case bytes.HasPrefix(head, []byte("JEPSEN")):
		return fmt.Errorf("%w: this is Jepsen's binary form (test.jepsen); give the history.edn or history.txt "+
			"that lies beside it", ErrNotHistory)
	case bytes.HasPrefix(head, []byte("\x1f\x8b")):
		return fmt.Errorf("%w: it is compressed; unpack it first (gunzip)", ErrNotHistory)
	case bytes.HasPrefix(head, []byte("\xff\xfe")) || bytes.HasPrefix(head, []byte("\xfe\xff")):
		return fmt.Errorf("%w: it is UTF-16; convert it to UTF-8 first (iconv -f UTF-16 -t UTF-8)", ErrNotHistory)
	case bytes.IndexByte(head, 0) >= 0:
		return fmt.Errorf("%w: it is binary, with a zero byte at %d", ErrNotHistory, bytes.IndexByte(head, 0))
	}
	return nil
}

// detectMaps tells apart what begins with {.
func detectMaps(body []byte) (Format, string) {
	inside := bytes.TrimLeft(body[1:], " \t\r\n,")
	if len(inside) == 0 || inside[0] != '"' || !jsonField(inside) {
		return FormatEDN, "it begins with a map of EDN"
	}
	line, rest, whole := bytes.Cut(body, []byte("\n"))
	line = bytes.TrimRight(line, " \t\r")
	end, broken := objectEnd(line), bytes.HasPrefix(bytes.TrimLeft(rest, " \t\r\n"), []byte("{"))
	switch { // an object that goes on in the next line goes on with a name, not with another object
	case end != len(line) && (end >= 0 || whole && !broken):
		return FormatJSON, "it begins with a JSON object that is not alone on its line"
	case ourOwn(line):
		return FormatJSONL, "it begins with a line of our own JSON lines"
	}
	return FormatJSON, "it begins with a JSON object on a line, which is not in our own words"
}

// ourOwn says that a line has our fields only, and our words: histories of
// other suites are read under assumptions of their own (see [Reading]).
func ourOwn(line []byte) bool {
	p := parser{words: make(map[string]string)}
	p.b = line
	quick := p.object(p.eventField)
	if p.skip(); !quick || p.i != len(p.b) {
		return bytes.HasPrefix(line, []byte(`{"index":`)) // beyond the quick path, or torn
	}
	return p.event.Process == Nemesis || canonicalOp(p.event.F) == p.event.F
}

func detectVector(body []byte) (Format, string) {
	inside := bytes.TrimLeft(body[1:], " \t\r\n")
	if body[0] == '[' && (len(inside) == 0 || inside[0] == ']') {
		return FormatJSON, "it is an array of nothing"
	}
	if body[0] == '[' && inside[0] == '{' {
		if field := bytes.TrimLeft(inside[1:], " \t\r\n"); jsonField(field) {
			return FormatJSON, "it begins with an array of JSON objects"
		}
	}
	return FormatEDN, "it begins with a vector or list of EDN"
}

// jsonField says that b begins with "name" and a colon.
func jsonField(b []byte) bool {
	if len(b) == 0 || b[0] != '"' {
		return false
	}
	end := bytes.IndexByte(b[1:], '"')
	if end < 0 {
		return false
	}
	rest := bytes.TrimLeft(b[end+2:], " \t\r\n")
	return len(rest) > 0 && rest[0] == ':'
}

// objectEnd is the length of the JSON object that line begins with; -1 if it has no end.
func objectEnd(line []byte) int {
	depth, quoted := 0, false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return -1
}

func notationBegins(body []byte) bool {
	word, _, _ := strings.Cut(string(body[:min(len(body), 16)]), " ")
	switch word {
	case "client", "clients", "nemesis", "#", "#\n":
		return true
	}
	return body[0] == '#'
}

func hasTSVLine(head []byte) bool {
	for line := range bytes.Lines(head) {
		if _, ok := cutTSV(string(line)); ok {
			return true
		}
	}
	return false
}
