package history

import (
	"regexp"
	"strconv"
)

// firstNamed is the number of the first process that has a name instead. A
// history in which others have numbers as great is refused, so that such a
// number always means a name.
const firstNamed = Process(1_000_000)

// namedNumber finds the numbers that stand for names in a text for people.
var namedNumber = regexp.MustCompile(`\b(client|process) ([0-9]{7,10})\b`)

// WithNames puts names into a text that speaks of "client 1000003" or "process
// 1000003": of processes that a history names and does not number.
func (h *History) NameProcesses(text string) string { return withNames(text, h.ProcessNames) }

func withNames(text string, named []string) string {
	if len(named) == 0 {
		return text
	}
	return namedNumber.ReplaceAllStringFunc(text, func(words string) string {
		parts := namedNumber.FindStringSubmatch(words)
		n, err := strconv.Atoi(parts[2])
		if n -= int(firstNamed); err != nil || n < 0 || n >= len(named) {
			return words
		}
		return parts[1] + " " + named[n]
	})
}
