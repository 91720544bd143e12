package reports

import (
	"fmt"
	"math"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/lockchaos/lockchaos/history"
)

// length is a duration for people: three digits, or so, and one unit.
func length(d time.Duration) string {
	if d < 0 {
		return "-" + length(-d)
	}
	switch {
	case d == history.Never:
		return "for ever"
	case d == 0:
		return "0 s"
	case d < time.Microsecond:
		return fmt.Sprintf("%d ns", d.Nanoseconds())
	case d < time.Millisecond:
		return fmt.Sprintf("%s µs", digits(float64(d)/1e3))
	case d < time.Second:
		return fmt.Sprintf("%s ms", digits(float64(d)/1e6))
	case d < 10*time.Minute:
		return fmt.Sprintf("%.2f s", d.Seconds())
	}
	return d.Round(time.Second).String()
}

// digits keeps about three digits: 1.23, 12.3, 123.
func digits(x float64) string {
	decimals := 2 - int(math.Floor(math.Log10(math.Max(x, 1))))
	s := fmt.Sprintf("%.*f", max(decimals, 0), x)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

// instant is a time on the harness's clock: milliseconds are as fine as anybody reads.
func instant(t time.Duration) string {
	if t == history.Never {
		return "never"
	}
	return fmt.Sprintf("%.3f s", t.Seconds())
}

// clientName is how every format calls a client.
func clientName(c int) string { return fmt.Sprintf("client %d", c) }

// targetName turns the target of a fault into words: "client:3" is client 3.
func targetName(target string) string {
	if c, ok := strings.CutPrefix(target, "client:"); ok {
		return "client " + c
	}
	return target
}

// count is "1 grant" or "3 grants".
func count(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	if strings.HasSuffix(one, "s") || strings.HasSuffix(one, "ch") {
		return fmt.Sprintf("%d %ses", n, one)
	}
	if strings.HasSuffix(one, "y") {
		return fmt.Sprintf("%d %sies", n, one[:len(one)-1])
	}
	return fmt.Sprintf("%d %ss", n, one)
}

// short cuts text after n letters, and shows that it did.
func short(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:n-1]) + "…"
}

// quote puts a name in the marks that HTML and Markdown turn into code. A mark
// inside the name, which a hostile key may have, becomes a plain apostrophe.
func quote(name string) string {
	return "`" + strings.NewReplacer("`", "'", "\n", "\uFFFD", "\r", "\uFFFD").Replace(name) + "`"
}

// capital begins a sentence with a capital letter.
func capital(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	if n == 0 {
		return s
	}
	return string(unicode.ToUpper(r)) + s[n:]
}
