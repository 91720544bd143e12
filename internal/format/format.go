// Package format turns counts, durations and instants into text for people. Every error, progress line and
// report uses it, so that the same value reads the same everywhere. JSON carries plain numbers instead.
package format

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Forever marks a duration or an instant without end. history.Infinity is the same.
const Forever = time.Duration(math.MaxInt64)

// Count is n with its noun: "1 grant", "3 grants", "1,200 retries". The noun is given in the singular; of
// several words the last one is inflected.
func Count[N ~int | ~int32 | ~int64 | ~uint64](n N, noun string) string {
	return Number(n) + " " + Plural(n, noun)
}

// Plural is the noun alone, singular or plural as n requires.
func Plural[N ~int | ~int32 | ~int64 | ~uint64](n N, noun string) string {
	switch {
	case n == 1:
		return noun
	case strings.HasSuffix(noun, "s"), strings.HasSuffix(noun, "ch"), strings.HasSuffix(noun, "sh"),
		strings.HasSuffix(noun, "x"):
		return noun + "es"
	case strings.HasSuffix(noun, "y") && !strings.HasSuffix(noun, "ay") && !strings.HasSuffix(noun, "ey") &&
		!strings.HasSuffix(noun, "oy"):
		return noun[:len(noun)-1] + "ies"
	}
	return noun + "s"
}

// Each is n with its noun and a predicate of each: "no releases", "1 release, true", "2 releases, each true".
func Each[N ~int | ~int32 | ~int64 | ~uint64](n N, noun, predicate string) string {
	switch n {
	case 0:
		return "no " + Plural(n, noun)
	case 1:
		return Count(n, noun) + ", " + predicate
	}
	return Count(n, noun) + ", each " + predicate
}

// Number is n with a comma between groups of three digits: "12,345".
func Number[N ~int | ~int32 | ~int64 | ~uint64](n N) string {
	s := fmt.Sprint(n)
	sign := ""
	if strings.HasPrefix(s, "-") {
		sign, s = "-", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return sign + s
}

// Duration is d with about three digits and one unit: "53.4 ms", "1.30 s". From ten minutes on it has the
// units of [time.Duration.String]; [Forever] is "forever".
func Duration(d time.Duration) string {
	switch {
	case d == Forever:
		return "forever"
	case d < 0:
		return "-" + Duration(-max(d, -Forever))
	case d == 0:
		return "0 s"
	case d < time.Microsecond:
		return fmt.Sprintf("%d ns", d.Nanoseconds())
	case d < time.Millisecond:
		return digits(float64(d)/1e3) + " µs"
	case d < time.Second:
		return digits(float64(d)/1e6) + " ms"
	case d < 10*time.Minute:
		return fmt.Sprintf("%.2f s", d.Seconds())
	}
	return d.Round(time.Second).String()
}

// digits keeps about three digits: 1.23, 12.3, 123.
func digits(x float64) string {
	decimals := 2 - int(math.Floor(math.Log10(math.Max(x, 1))))
	s := strconv.FormatFloat(x, 'f', max(decimals, 0), 64)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

// Instant is a time since the start of the run, to the millisecond: "1.713 s". [Forever] is "never".
func Instant(t time.Duration) string {
	if t == Forever {
		return "never"
	}
	return fmt.Sprintf("%.3f s", t.Seconds())
}

// Tick is an instant on an axis, with the decimals that distinguish it from its
// neighbors, which are step apart: "1.5 s", "0.25 s".
func Tick(t, step time.Duration) string {
	decimals := 0
	for unit := time.Second; step < unit && decimals < 3; unit /= 10 {
		decimals++
	}
	if step < time.Millisecond {
		decimals = 1
		for unit := 100 * time.Microsecond; step < unit && decimals < 6; unit /= 10 {
			decimals++
		}
		return fmt.Sprintf("%.*f ms", decimals, float64(t)/1e6)
	}
	return fmt.Sprintf("%.*f s", decimals, t.Seconds())
}

// Elapsed is the time at the start of a line of progress, of fixed width: "  12.0s".
func Elapsed(t time.Duration) string { return fmt.Sprintf("%6.1fs", t.Seconds()) }

// Truncate cuts s after n runes and ends it with an ellipsis where it does.
func Truncate(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:max(n-1, 0)]) + "…"
}

// Capitalize makes the first letter of s a capital.
func Capitalize(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	if n == 0 {
		return s
	}
	return string(unicode.ToUpper(r)) + s[n:]
}

// Texts converts each element of a list to text.
func Texts[T any, S ~string](list []T, text func(T) S) []string {
	texts := make([]string, len(list))
	for i, element := range list {
		texts[i] = string(text(element))
	}
	return texts
}

// Errors are the errors that [errors.Join] has joined in err, also in errors that it has joined in turn, or else err.
func Errors(err error) (all []error) {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || strings.Join(Texts(joined.Unwrap(), error.Error), "\n") != err.Error() { // a fmt.Errorf with several %w
		return []error{err}
	}
	for _, e := range joined.Unwrap() {
		all = append(all, Errors(e)...)
	}
	return all
}

// Printable replaces characters that a terminal may interpret: control characters, escape sequences, invisible and
// bidirectional marks. Line breaks and tabs stay. Scenarios, clients and histories come from others, and a name in them
// must not overwrite a verdict.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, s)
}

// Markdown escapes untrusted text for one line of Markdown: no markup, no line break, no table column, no mention.
func Markdown(s string) string {
	s = strings.Join(strings.Fields(Printable(s)), " ")
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "|", `\|`, "*", `\*`, "_", `\_`, "[", `\[`,
		"]", `\]`, "`", "\\`", "#", `\#`, "!", `\!`, "@", "@\u200b").Replace(s)
}

// MarkdownCodes is [Markdown] with `words in backquotes` as code.
func MarkdownCodes(s string) string {
	parts := strings.Split(s, "`")
	for i, part := range parts {
		if i%2 == 1 && i < len(parts)-1 {
			part = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "|", "&#124;").Replace(Printable(part))
			parts[i] = "<code>" + strings.Join(strings.Fields(part), " ") + "</code>"
			continue
		}
		parts[i] = escapeKeepingEnds(part)
	}
	return strings.Join(parts, "")
}

// escapeKeepingEnds is [Markdown] that keeps a space at both ends, which separates text from code.
func escapeKeepingEnds(s string) string {
	out := Markdown(s)
	if strings.HasPrefix(s, " ") {
		out = " " + out
	}
	if strings.HasSuffix(s, " ") && strings.TrimSpace(s) != "" {
		out += " "
	}
	return out
}

// ShellWord quotes a word for a shell if it needs quotes.
func ShellWord(word string) string {
	const safe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,@%+µ"
	if word != "" && strings.Trim(word, safe) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// ShellWords splits a command line at its spaces. A word that [ShellWord] has quoted stays whole, with its quotes.
func ShellWords(line string) []string {
	return regexp.MustCompile(`(?:'[^']*'|\\.|[^ ])+`).FindAllString(line, -1)
}

// WriteJSON writes v as indented JSON to w.
func WriteJSON(w io.Writer, v any) error {
	e := json.NewEncoder(JSON(w))
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// JSON writes JSON texts to w in which characters that [Printable] would replace are escaped, so that a terminal shows
// them and a decoder still reads them. Each Write has to be of whole characters, as a json.Encoder's are.
func JSON(w io.Writer) io.Writer { return jsonWriter{w} }

type jsonWriter struct{ w io.Writer }

func (j jsonWriter) Write(text []byte) (int, error) {
	var b bytes.Buffer
	for _, r := range string(text) {
		if r == '\n' || r == '\t' || unicode.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, "\\u%04x", unit)
		}
	}
	_, err := j.w.Write(b.Bytes())
	return len(text), err
}

// Line is [Printable] for a text that must stay on one line, such as a name from a
// history: line breaks and tabs are shown as \n, \r and \t.
func Line(s string) string {
	return Printable(strings.NewReplacer("\n", `\n`, "\r", `\r`, "\t", `\t`).Replace(s))
}
