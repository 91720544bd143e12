package format

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestCount(t *testing.T) {
	for want, got := range map[string]string{
		"0 keys":         Count(0, "key"),
		"1 key":          Count(1, "key"),
		"2 retries":      Count(2, "retry"),
		"2 branches":     Count(2, "branch"),
		"3 delays":       Count(3, "delay"),
		"2 addresses":    Count(2, "address"),
		"1,234 grants":   Count(int64(1234), "grant"),
		"-1,234,567 ops": Count(-1234567, "op"),
		"100 lost locks": Count(uint64(100), "lost lock"),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestEach(t *testing.T) {
	for n, want := range map[int]string{0: "no replies", 1: "1 reply, true", 1200: "1,200 replies, each true"} {
		if got := Each(n, "reply", "true"); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0:                        "0 s",
		7:                        "7 ns",
		1500:                     "1.5 µs",
		53400 * time.Microsecond: "53.4 ms",
		1300 * time.Millisecond:  "1.30 s",
		-2 * time.Second:         "-2.00 s",
		9*time.Minute + 59*time.Second + 999*time.Millisecond: "600.00 s",
		15 * time.Minute: "15m0s",
		Forever:          "forever",
		-1 << 63:         "-forever",
	} {
		if got := Duration(d); got != want {
			t.Errorf("Duration(%d) = %q, want %q", d, got, want)
		}
	}
}

func TestInstant(t *testing.T) {
	for at, want := range map[time.Duration]string{1713 * time.Millisecond: "1.713 s", 10 * time.Millisecond: "0.010 s",
		0: "0.000 s", 9_600_000: "0.010 s", 30 * time.Microsecond: "0.000 s"} {
		if got := Instant(at); got != want {
			t.Errorf("%v: %q, want %q", at, got, want)
		}
	}
	if got := Instant(Forever); got != "never" {
		t.Error(got)
	}
}

func TestTick(t *testing.T) {
	for step, want := range map[time.Duration]string{
		2 * time.Second: "2 s", 500 * time.Millisecond: "1.5 s", 20 * time.Millisecond: "1.54 s",
		time.Millisecond: "1.543 s", 500 * time.Microsecond: "1543.2 ms",
		20 * time.Microsecond: "1543.21 ms", time.Microsecond: "1543.210 ms",
	} {
		if got := Tick(1543210*time.Microsecond, step); got != want {
			t.Errorf("step %v: %q, want %q", step, got, want)
		}
	}
}

func TestElapsed(t *testing.T) {
	if got := Elapsed(12 * time.Second); got != "  12.0s" {
		t.Errorf("%q", got)
	}
}

func TestTruncate(t *testing.T) {
	for want, got := range map[string]string{
		"größ…": Truncate("größer", 5), "größer": Truncate("größer", 6), "…": Truncate("ab", 0),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestCapitalize(t *testing.T) {
	for want, got := range map[string]string{
		"": Capitalize(""), "Öl": Capitalize("öl"), "Client 1": Capitalize("client 1"),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestShellWords: a command line splits into its words, and other text loses only its spaces.
func TestShellWords(t *testing.T) {
	words := []string{"chaos", "run", ShellWord("exec:python3 my lock.py"), ShellWord("it's here"), ShellWord("")}
	if got := ShellWords(strings.Join(words, " ")); !slices.Equal(got, words) {
		t.Errorf("words %q, want %q", got, words)
	}
	if got := ShellWords(`it's \`); !slices.Equal(got, []string{"it's", `\`}) {
		t.Errorf("words %q", got)
	}
}

func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{
		"a\x1b[2Jb": "a\uFFFD[2Jb", "a\u202eb": "a\uFFFDb", "\xff": "\uFFFD", "größe\t`k`\n": "größe\t`k`\n",
	} {
		if got := Printable(in); got != want {
			t.Errorf("Printable(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestLineStaysOnOneLine(t *testing.T) {
	for in, want := range map[string]string{
		"orders": "orders", "a\nSAFE: b": `a\nSAFE: b`, "a\r\n\tb": `a\r\n\tb`, "\u202eevil\u2028\x1b[2J": "\ufffdevil\ufffd\ufffd[2J",
		"\u0085x\v\f": "\ufffdx\ufffd\ufffd", "größe": "größe",
	} {
		if got := Line(in); got != want {
			t.Errorf("Line(%q) = %q, want %q", in, got, want)
		}
	}
}

// TestJSON: characters that a terminal would interpret are escaped, and the value stays the same.
func TestJSON(t *testing.T) {
	want := "a\u202eb\u2066c\u009b31m\U000e0041 é€🙂"
	var b bytes.Buffer
	if err := json.NewEncoder(JSON(&b)).Encode(want); err != nil {
		t.Fatal(err)
	}
	if text := b.String(); Printable(text) != text || !strings.Contains(text, "é€🙂") {
		t.Errorf("written: %q", text)
	}
	var got string
	if err := json.Unmarshal(b.Bytes(), &got); err != nil || got != want {
		t.Errorf("read: %q, %v", got, err)
	}
}
