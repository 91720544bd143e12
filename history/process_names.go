package history

import (
	"regexp"
	"strconv"
)

// firstNamed is the number of the first process that has a name instead. A history with names is rejected
// if it also has process numbers this great.
const firstNamed = Process(1_000_000)

// namedNumber finds such numbers in a text.
var namedNumber = regexp.MustCompile(`\b(client|process) ([0-9]{7,10})\b`)

// NameProcesses replaces "client 1000003" and "process 1000003" in text by the name of the process, for histories whose
// processes have names. Other text is unchanged.
func (h *History) NameProcesses(text string) string { return nameProcesses(text, h.ProcessNames) }

func nameProcesses(text string, names []string) string {
	if len(names) == 0 {
		return text
	}
	return namedNumber.ReplaceAllStringFunc(text, func(match string) string {
		parts := namedNumber.FindStringSubmatch(match)
		n, err := strconv.Atoi(parts[2])
		if n -= int(firstNamed); err != nil || n < 0 || n >= len(names) {
			return match
		}
		return parts[1] + " " + names[n]
	})
}
