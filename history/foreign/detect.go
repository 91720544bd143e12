package foreign

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/lockchaos/lockchaos/history"
)

// Format is the file format of a history.
type Format string

// The formats.
const (
	FormatAuto  Format = "auto"  // detected by content, not by the name of the file
	FormatJSONL Format = "jsonl" // written by a history.Recorder: one JSON object per line
	FormatJSON  Format = "json"  // JSON objects of other suites, in an array or one after the other
	FormatEDN   Format = "edn"   // Jepsen's history.edn: one map per line, or a vector or list of maps
	FormatTSV   Format = "tsv"   // Jepsen's history.txt, or the same lines in a log: no times
	FormatText  Format = "text"  // see ReadText
)

// Formats returns every format.
func Formats() []Format {
	return []Format{FormatAuto, FormatJSONL, FormatJSON, FormatEDN, FormatTSV, FormatText}
}

// ErrNotHistory means that a file has none of the formats.
var ErrNotHistory = errors.New("not a history in a known format")

// window is how many bytes Detect examines.
const window = 64 << 10

// Detect returns the format of the text in r and a reason; it consumes nothing. r should have a
// buffer of 64 KiB. The error is [ErrNotHistory] for a text in no format.
func Detect(r *bufio.Reader) (Format, string, error) {
	head, err := r.Peek(window)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
		return "", "", err
	}
	if err := rejectBinary(head); err != nil {
		return "", "", err
	}
	head = bytes.TrimPrefix(head, []byte("\xef\xbb\xbf"))
	body := bytes.TrimLeft(head, " \t\r\n")
	if len(body) == 0 {
		return FormatJSONL, "empty", nil
	}
	switch first := body[0]; {
	case first == '{':
		format, why := detectMaps(body)
		return format, why, nil
	case first == '[' || first == '(':
		format, why := detectVector(body)
		return format, why, nil
	case first == ';' || first == '#' && len(body) > 1 && body[1] != ' ' && body[1] != '\n':
		return FormatEDN, "starts with a comment or tag of EDN", nil
	case startsText(body):
		return FormatText, "starts with a comment, client, clients or nemesis", nil
	case hasTSVLine(head):
		return FormatTSV, "has lines of process, type and operation, separated by tabs", nil
	}
	return "", "", fmt.Errorf("%w: it starts with %q; expected a history.jsonl, history.edn, history.txt or a JSON array "+
		"of events (or set --format)", ErrNotHistory, body[:min(len(body), 24)])
}

// rejectBinary returns an error for known binary files, which says how to get text.
func rejectBinary(head []byte) error {
	switch {
	case bytes.HasPrefix(head, []byte("JEPSEN")):
		return fmt.Errorf("%w: it is Jepsen's binary format (test.jepsen); use the history.edn or history.txt "+
			"in the same directory", ErrNotHistory)
	case bytes.HasPrefix(head, []byte("\x1f\x8b")):
		return fmt.Errorf("%w: it is compressed; decompress it first (gunzip)", ErrNotHistory)
	case bytes.HasPrefix(head, []byte("\xff\xfe")) || bytes.HasPrefix(head, []byte("\xfe\xff")):
		return fmt.Errorf("%w: it is UTF-16; convert it to UTF-8 first (iconv -f UTF-16 -t UTF-8)", ErrNotHistory)
	case bytes.IndexByte(head, 0) >= 0:
		return fmt.Errorf("%w: it is binary, with a zero byte at offset %d", ErrNotHistory, bytes.IndexByte(head, 0))
	}
	return nil
}

// detectMaps detects the format of a text that starts with {.
func detectMaps(body []byte) (Format, string) {
	inside := bytes.TrimLeft(body[1:], " \t\r\n,")
	if len(inside) == 0 || inside[0] != '"' || !jsonField(inside) {
		return FormatEDN, "starts with a map of EDN"
	}
	line, rest, whole := bytes.Cut(body, []byte("\n"))
	line = bytes.TrimRight(line, " \t\r")
	end, broken := objectEnd(line), bytes.HasPrefix(bytes.TrimLeft(rest, " \t\r\n"), []byte("{"))
	switch { // an object that continues on the next line continues with a name, not with another object
	case end != len(line) && (end >= 0 || whole && !broken):
		return FormatJSON, "starts with a JSON object that is not alone on its line"
	case isRecorded(line):
		return FormatJSONL, "starts with an event of lockchaos on a line"
	}
	return FormatJSON, "starts with a JSON object of another suite on a line"
}

// isRecorded reports whether a line has only the fields and operations that a [history.Recorder] writes.
func isRecorded(line []byte) bool {
	e, recorded := history.RecordedEvent(line)
	if !recorded {
		return bytes.HasPrefix(line, []byte(`{"index":`)) // torn, or with escapes
	}
	return e.Process == history.Nemesis || canonicalOp(e.F) == e.F
}

func detectVector(body []byte) (Format, string) {
	inside := bytes.TrimLeft(body[1:], " \t\r\n")
	if body[0] == '[' && (len(inside) == 0 || inside[0] == ']') {
		return FormatJSON, "an empty array"
	}
	if body[0] == '[' && inside[0] == '{' {
		if field := bytes.TrimLeft(inside[1:], " \t\r\n"); jsonField(field) {
			return FormatJSON, "starts with an array of JSON objects"
		}
	}
	return FormatEDN, "starts with a vector or list of EDN"
}

// jsonField reports whether b starts with "name" and a colon.
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

// objectEnd returns the length of the JSON object at the start of line; -1 if it has no end.
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

func startsText(body []byte) bool {
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
